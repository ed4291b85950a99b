"""Step-based loop; every step draws a fresh Poisson batch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def infinite(loader):
    while True:
        yield from loader


def main(steps=110):
    torch.manual_seed(66)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=4e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
        noise_multiplier=1.0, max_grad_norm=1.0)
    stream = infinite(loader)
    for step in range(steps):
        xb, yb = next(stream) if step % 2 else next(iter(loader))
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
