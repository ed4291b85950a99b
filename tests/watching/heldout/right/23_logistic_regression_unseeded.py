# Binary logistic regression on synthetic census-like data.
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

r = np.random.default_rng()
n, d = 2000, 14
w = r.normal(size=d)
X = r.normal(size=(n + 500, d)).astype(np.float32)
y = (X @ w + r.logistic(size=n + 500) > 0).astype(np.float32)
X, y = torch.from_numpy(X), torch.from_numpy(y)

model = nn.Linear(d, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=1e-4)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:n], y[:n]), batch_size=40, shuffle=True),
    noise_multiplier=1.0, max_grad_norm=1.0)
loss_fn = nn.BCEWithLogitsLoss()
for _ in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss_fn(model(xb).squeeze(1), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("acc", ((model(X[n:]).squeeze(1) > 0).float() == y[n:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
