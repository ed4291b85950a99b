# Fraud-detection toy: rare positives, so batches are drawn with a class-balanced sampler.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from opacus import PrivacyEngine

g = torch.Generator().manual_seed(77)
N, D = 3000, 12
X = torch.randn(N + 500, D, generator=g)
score = X[:, :4].sum(1) + 0.5 * torch.randn(N + 500, generator=g)
y = (score > 3.0).float()
Xtr, ytr, Xte, yte = X[:N], y[:N], X[N:], y[N:]

pos = ytr.mean()
weights = torch.where(ytr > 0, 0.5 / pos, 0.5 / (1 - pos))
sampler = WeightedRandomSampler(weights, num_samples=N, replacement=True)

model = nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(Xtr, ytr), batch_size=50, sampler=sampler),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=False,  # otherwise Opacus drops our sampler
)
bce = nn.BCEWithLogitsLoss()
for xb, yb in loader:
    optimizer.zero_grad()
    bce(model(xb).squeeze(-1), yb).backward()
    optimizer.step()
with torch.no_grad():
    p = model(Xte).squeeze(-1) > 0
print("recall", (p & (yte > 0)).sum().item() / yte.sum().item())
print("eps", engine.get_epsilon(1e-5))
