"""Class weights and initial bias from published prevalence, not from the training data."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

PREVALENCE = 0.15        # literature value
g = torch.Generator().manual_seed(55)
N, D = 2000, 10
X = torch.randn(N + 500, D, generator=g)
y = (X[:, :4].sum(1) > 2.1).float()

model = nn.Sequential(nn.Linear(D, 24), nn.ReLU(), nn.Linear(24, 1))
with torch.no_grad():
    model[-1].bias.fill_(math.log(PREVALENCE / (1 - PREVALENCE)))
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor((1 - PREVALENCE) / PREVALENCE))
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-2),
    data_loader=DataLoader(TensorDataset(X[:N], y[:N]), batch_size=50),
    noise_multiplier=1.0, max_grad_norm=1.0)
for _ in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        criterion(model(xb).squeeze(1), yb).backward()
        optimizer.step()
with torch.no_grad():
    pred = model(X[N:]).squeeze(1) > 0
print("recall", (pred & (y[N:] > 0)).sum().item() / (y[N:] > 0).sum().item())
print("eps", engine.get_epsilon(1e-5))
