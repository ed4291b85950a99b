"""Tiny sampling rate: some Poisson batches are empty and still cost a (pure noise) step."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

g = torch.Generator().manual_seed(71)
N = 600
X = torch.randn(N + 200, 10, generator=g)
y = (X.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 2))
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.02),
    data_loader=DataLoader(TensorDataset(X[:N], y[:N]), batch_size=2),
    noise_multiplier=1.0, max_grad_norm=1.0)
for step, (xb, yb) in enumerate(loader):
    if step == 120:
        break
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(xb), yb).backward()
    optimizer.step()
with torch.no_grad():
    print("acc", (model(X[N:]).argmax(1) == y[N:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
