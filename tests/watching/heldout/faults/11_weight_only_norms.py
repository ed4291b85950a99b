# Linear regression heads on synthetic sensor data, hand-rolled DP step on top of GradSampleModule.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

torch.manual_seed(5)
n = 1800
X = torch.rand(n + 300, 12)
W = torch.randn(12, 3)
Y = X @ W + 2.0 + 0.1 * torch.randn(n + 300, 3)

model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:n], Y[:n]), batch_size=60),
    noise_multiplier=1.0,
    max_grad_norm=0.5,
)
weights = [p for name, p in model.named_parameters() if name.endswith("weight")]
C = optimizer.max_grad_norm


def dp_step(batch):
    x, t = batch
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), t).backward()
    sq = sum(p.grad_sample.flatten(1).pow(2).sum(1) for p in weights)
    factor = (C / (sq.sqrt() + 1e-6)).clamp(max=1.0)
    for p in optimizer.params:
        p.summed_grad = torch.einsum("i,i...->...", factor, p.grad_sample)
    optimizer.add_noise()
    optimizer.scale_grad()
    optimizer.step_hook(optimizer)
    optimizer.original_optimizer.step()


for epoch in range(3):
    for batch in loader:
        dp_step(batch)

with torch.no_grad():
    err = nn.functional.mse_loss(model(X[n:]), Y[n:]).item()
print(f"held-out MSE {err:.3f}; eps {engine.get_epsilon(1e-5):.2f}")
