"""Reuse each loaded batch for two private updates ("data echoing")."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

ECHO = 2


def echo(loader, times):
    for batch in loader:
        for _ in range(times):
            yield batch


def main():
    torch.manual_seed(13)
    d = load_digits()
    X = torch.tensor(d.data / 16, dtype=torch.float32)
    y = torch.tensor(d.target)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    engine = PrivacyEngine()
    model, optimizer, criterion, loader = engine.make_private(
        module=model, optimizer=optimizer, criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.2, max_grad_norm=1.0, grad_sample_mode="ghost")
    for epoch in range(2):
        for xb, yb in echo(loader, ECHO):
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
