"""Adds an activation-sparsity regulariser to the privatised gradient."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.cls = nn.Linear(48, 10)

    def forward(self, x):
        return self.cls(self.enc(x))


def l1_activation_grads(net, x, weight=0.02):
    penalty = weight * net.enc(x).abs().mean()
    return torch.autograd.grad(penalty, list(net.enc.parameters()))


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = Net()
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.4),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            if opt.pre_step():
                model.disable_hooks()
                for p, g in zip(net.enc.parameters(), l1_activation_grads(net, xb)):
                    p.grad.add_(g)
                model.enable_hooks()
                opt.original_optimizer.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
