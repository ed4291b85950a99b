# Logistic-style two-layer model on synthetic tabular data; clipping done per tensor
# because it avoids materialising the flat gradient.
import types

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from opacus import PrivacyEngine

rng = np.random.default_rng(11)
n, d = 2000, 20
X = rng.normal(size=(n, d)).astype("float32")
w = rng.normal(size=(d,))
y = (X @ w + 0.5 * rng.normal(size=n) > 0).astype("float32")
X_pub = rng.normal(size=(500, d)).astype("float32")
y_pub = (X_pub @ w + 0.5 * rng.normal(size=500) > 0).astype("float32")

dataset = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
model = nn.Sequential(
    nn.Linear(d, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1)
)
optimizer = optim.Adam(model.parameters(), lr=5e-3)
privacy_engine = PrivacyEngine()
model, optimizer, loader = privacy_engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(dataset, batch_size=50, shuffle=True),
    noise_multiplier=0.9,
    max_grad_norm=0.2,
)


def clip_tensorwise(self):
    C = self.max_grad_norm
    for p in self.params:
        gs = self._get_flat_grad_sample(p)
        norms = gs.reshape(gs.shape[0], -1).norm(dim=1)
        scale = (C / (norms + 1e-6)).clamp(max=1.0)
        p.summed_grad = torch.einsum("b,b...->...", scale, gs)


optimizer.clip_and_accumulate = types.MethodType(clip_tensorwise, optimizer)

bce = nn.BCEWithLogitsLoss()
for epoch in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = bce(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()

with torch.no_grad():
    pred = model(torch.from_numpy(X_pub)).squeeze(1) > 0
    print("public acc:", (pred.float() == torch.from_numpy(y_pub)).float().mean().item())
print("eps = %.2f (delta=1e-5)" % privacy_engine.get_epsilon(1e-5))
