"""Keeps the snapshot with the highest accuracy on the training set."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


@torch.no_grad()
def accuracy(model, X, y):
    model.eval()
    acc = (model(X).argmax(1) == y).float().mean().item()
    model.train()
    return acc


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    Xtr, ytr, Xte, yte = X[:1500], y[:1500], X[1500:], y[1500:]
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.5, momentum=0.5),
        data_loader=DataLoader(TensorDataset(Xtr, ytr), batch_size=100),
        noise_multiplier=1.5, max_grad_norm=1.0)
    best_acc, best_state = -1.0, None
    for epoch in range(6):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
        acc = accuracy(model, Xtr, ytr)
        if acc > best_acc:
            best_acc, best_state = acc, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print("test accuracy", accuracy(model, Xte, yte))
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
