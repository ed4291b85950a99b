import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--dropout", type=float, default=0.25)
    ap.add_argument("--noise-multiplier", type=float, default=1.2)
    ap.add_argument("--max-grad-norm", type=float, default=0.7)
    ap.add_argument("--delta", type=float, default=1e-5)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(
        nn.Linear(64, 96), nn.ReLU(), nn.Dropout(args.dropout),
        nn.Linear(96, 48), nn.ReLU(), nn.Dropout(args.dropout), nn.Linear(48, 10))
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=3e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50, shuffle=True),
        noise_multiplier=args.noise_multiplier, max_grad_norm=args.max_grad_norm)
    for epoch in range(args.epochs):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("test acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(args.delta))


if __name__ == "__main__":
    main()
