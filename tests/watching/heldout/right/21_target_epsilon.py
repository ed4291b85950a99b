import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def main():
    p = argparse.ArgumentParser(description="DP training with a target epsilon")
    p.add_argument("--epsilon", type=float, default=3.0)
    p.add_argument("--delta", type=float, default=1e-5)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=60)
    a = p.parse_args()
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private_with_epsilon(
        module=model, optimizer=torch.optim.AdamW(model.parameters(), lr=5e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=a.batch_size, shuffle=True),
        target_epsilon=a.epsilon, target_delta=a.delta, epochs=a.epochs, max_grad_norm=1.0)
    for _ in range(a.epochs):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print(f"spent {engine.get_epsilon(a.delta):.3f} of {a.epsilon}")


if __name__ == "__main__":
    main()
