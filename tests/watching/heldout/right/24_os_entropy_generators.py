"""Separate generators for sampling and noise, both seeded from the operating system."""
import secrets

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def fresh_generator():
    return torch.Generator().manual_seed(secrets.randbits(63))


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 56), nn.ReLU(), nn.Linear(56, 10))
    loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60, generator=fresh_generator())
    engine = PrivacyEngine(accountant="rdp")
    net, opt, criterion, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.3),
        criterion=nn.CrossEntropyLoss(), data_loader=loader,
        noise_multiplier=1.1, max_grad_norm=1.0,
        noise_generator=fresh_generator(), grad_sample_mode="ghost")
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            criterion(net(xb), yb).backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        print("acc", (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
