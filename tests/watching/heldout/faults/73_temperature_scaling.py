"""DP training followed by temperature scaling (Guo et al., 2017)."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class Calibrated(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.log_t = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return self.model(x) / self.log_t.exp()


def calibrate(model, X, y):
    wrapped = Calibrated(model).eval()
    with torch.no_grad():
        logits = model(X)
    lbfgs = torch.optim.LBFGS([wrapped.log_t], lr=0.1, max_iter=40)

    def closure():
        lbfgs.zero_grad()
        loss = F.cross_entropy(logits / wrapped.log_t.exp(), y)
        loss.backward()
        return loss

    lbfgs.step(closure)
    return wrapped


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    dp, opt, loader = engine.make_private(
        module=net, optimizer=torch.optim.Adam(net.parameters(), lr=4e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            F.cross_entropy(dp(xb), yb).backward()
            opt.step()
    final = calibrate(net, X[:1500], y[:1500])
    with torch.no_grad():
        print("test nll", F.cross_entropy(final(X[1500:]), y[1500:]).item(), "T", final.log_t.exp().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
