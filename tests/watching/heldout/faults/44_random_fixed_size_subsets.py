"""Custom loop: draws a fixed-size random subset per step, accounting by make_private's hook."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

rng = np.random.default_rng()
STEPS, BATCH = 90, 45


def xor_data(n, seed):
    r = np.random.default_rng(seed)
    x = r.uniform(-1, 1, size=(n, 6)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(np.int64))


X, y = xor_data(1800, 1)
Xv, yv = xor_data(400, 2)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
engine = PrivacyEngine()
model, optimizer, _ = engine.make_private(
    module=model,
    optimizer=torch.optim.Adam(model.parameters(), lr=5e-3),
    data_loader=DataLoader(TensorDataset(X, y), batch_size=BATCH),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
for step in range(STEPS):
    idx = torch.from_numpy(rng.choice(len(X), size=BATCH, replace=False))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(X[idx]), y[idx]).backward()
    optimizer.step()
with torch.no_grad():
    print("val", (model(Xv).argmax(1) == yv).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
