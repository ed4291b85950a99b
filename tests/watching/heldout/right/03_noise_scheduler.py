"""Step-wise decaying noise multiplier; the accountant sees the multiplier of every step."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.schedulers import StepNoise

g = torch.Generator().manual_seed(5)
N, D = 2000, 12
X = torch.randn(N + 400, D, generator=g)
y = (X[:, :6].prod(1).sign() + X[:, 6:].sum(1) > 0).long()

model = nn.Sequential(nn.Linear(D, 40), nn.ReLU(), nn.Linear(40, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:N], y[:N]), batch_size=80),
    noise_multiplier=1.5, max_grad_norm=1.0,
)
noise_scheduler = StepNoise(optimizer, step_size=1, gamma=0.9)
for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
    noise_scheduler.step()
with torch.no_grad():
    print("acc", (model(X[N:]).argmax(1) == y[N:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
