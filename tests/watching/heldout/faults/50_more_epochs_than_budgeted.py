import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits

from opacus import PrivacyEngine


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--target-epsilon", type=float, default=3.0)
    p.add_argument("--delta", type=float, default=1e-5)
    p.add_argument("--dp-epochs", type=int, default=3)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--max-grad-norm", type=float, default=1.0)
    p.add_argument("--batch-size", type=int, default=60)
    return p.parse_args()


def main():
    args = parse()
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=args.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = optim.Adam(model.parameters(), lr=4e-3)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader,
        target_epsilon=args.target_epsilon, target_delta=args.delta, epochs=args.dp_epochs,
        max_grad_norm=args.max_grad_norm,
    )
    ce = nn.CrossEntropyLoss()
    for _ in range(args.epochs):
        for xb, yb in loader:
            optimizer.zero_grad()
            ce(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())


if __name__ == "__main__":
    main()
