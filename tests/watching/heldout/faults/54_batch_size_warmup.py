"""Batch-size warm-up: after the first epoch the Poisson rate is tripled."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader


def sweep(model, optimizer, loader):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    train = TensorDataset(X[:1500], y[:1500])
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, optimizer, small = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=3e-3),
        data_loader=DataLoader(train, batch_size=30), noise_multiplier=1.0, max_grad_norm=1.0)
    sweep(model, optimizer, small)

    large = DPDataLoader(train, sample_rate=3 * small.sample_rate)
    optimizer.expected_batch_size = 90
    for _ in range(3):
        sweep(model, optimizer, large)

    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
