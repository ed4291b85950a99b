"""Adam, then a polishing phase with SGD: both through the same engine, both accounted."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def run(model, opt, loader, epochs):
    for _ in range(epochs):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()


def main():
    torch.manual_seed(3)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    plain = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60)
    engine = PrivacyEngine(accountant="rdp")
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model, adam, loader = engine.make_private(
        module=net, optimizer=torch.optim.Adam(net.parameters(), lr=4e-3), data_loader=plain,
        noise_multiplier=1.0, max_grad_norm=1.0)
    run(model, adam, loader, epochs=2)
    model, sgd, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.05), data_loader=plain,
        noise_multiplier=1.4, max_grad_norm=0.8)
    run(model, sgd, loader, epochs=2)
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
