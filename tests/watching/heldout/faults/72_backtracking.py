"""Backtracking: an update that made the current batch worse is undone."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(3)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
ce = nn.CrossEntropyLoss()
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=2.5)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
    noise_multiplier=1.2, max_grad_norm=1.0,
)


@torch.no_grad()
def snapshot():
    return [p.clone() for p in model.parameters()]


@torch.no_grad()
def restore(saved):
    for p, s in zip(model.parameters(), saved):
        p.copy_(s)


for epoch in range(3):
    for xb, yb in loader:
        before = snapshot()
        optimizer.zero_grad()
        loss = ce(model(xb), yb)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            worse = ce(model(xb), yb) > loss
        if worse:
            restore(before)

with torch.no_grad():
    print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
