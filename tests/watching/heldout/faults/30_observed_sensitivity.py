"""Tight calibration: scale the noise to the largest norm in the batch, never more than C."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise


class TightDPOptimizer(DPOptimizer):
    def clip_and_accumulate(self):
        flat = torch.stack([g.flatten(1).norm(dim=1) for g in self.grad_samples], 1).norm(dim=1)
        self.sensitivity = min(self.max_grad_norm, flat.max().item())
        super().clip_and_accumulate()

    def add_noise(self):
        for p in self.params:
            z = _generate_noise(self.noise_multiplier * self.sensitivity, p.summed_grad, self.generator)
            p.grad = (p.summed_grad + z).view_as(p)


g = torch.Generator().manual_seed(42)
N, D = 2000, 8
X = torch.randn(N + 400, D, generator=g)
beta = torch.randn(D, 1, generator=g)
Y = X @ beta * 0.1 + 0.02 * torch.randn(N + 400, 1, generator=g)

model = nn.Linear(D, 1)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    data_loader=DataLoader(TensorDataset(X[:N], Y[:N]), batch_size=40),
    noise_multiplier=1.0,
    max_grad_norm=8.0,
)
optimizer.__class__ = TightDPOptimizer
for epoch in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("held-out mse", nn.functional.mse_loss(model(X[N:]), Y[N:]).item())
print("eps", engine.get_epsilon(1e-5))
