"""DP training assembled from Opacus' building blocks, without PrivacyEngine."""
import argparse

import torch
from torch import nn
from torch.utils.data import TensorDataset
from sklearn.datasets import load_digits
from opacus import GradSampleModule
from opacus.accountants import PRVAccountant
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer

ap = argparse.ArgumentParser()
ap.add_argument("--lot", type=int, default=50)
ap.add_argument("--sigma", type=float, default=0.9)
ap.add_argument("--clip", type=float, default=1.0)
ap.add_argument("--epochs", type=int, default=3)
ap.add_argument("--delta", type=float, default=1e-5)
opts = ap.parse_args()

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train = TensorDataset(X[:1500], y[:1500])
loader = DPDataLoader(train, sample_rate=opts.lot / len(train))
model = GradSampleModule(nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 10)))
optimizer = DPOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.4),
    noise_multiplier=opts.sigma,
    max_grad_norm=opts.clip,
    expected_batch_size=opts.lot,
)
accountant = PRVAccountant()
optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=1 / len(train)))

for _ in range(opts.epochs):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
print("eps", accountant.get_epsilon(delta=opts.delta))
