"""Saves engine checkpoints and resumes with the accountant's history."""
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_set = TensorDataset(X[:1500], y[:1500])


def setup():
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.8)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=DataLoader(train_set, batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    return engine, model, optimizer, loader


def run_epochs(model, optimizer, loader, n):
    for _ in range(n):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "ckpt.pt")
        engine, model, optimizer, loader = setup()
        run_epochs(model, optimizer, loader, 2)
        engine.save_checkpoint(path=path, module=model, optimizer=optimizer)

        engine, model, optimizer, loader = setup()
        engine.load_checkpoint(path=path, module=model, optimizer=optimizer)
        run_epochs(model, optimizer, loader, 2)
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
