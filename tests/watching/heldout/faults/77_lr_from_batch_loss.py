"""Polyak-like step size: learning rate follows the loss of the current batch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

g = torch.Generator().manual_seed(33)
N = 2000
X = torch.randn(N + 400, 11, generator=g)
Y = torch.tanh(X @ torch.randn(11, generator=g)) + 0.05 * torch.randn(N + 400, generator=g)

model = nn.Sequential(nn.Linear(11, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine()
model, opt, criterion, loader = engine.make_private(
    module=model, optimizer=opt, criterion=nn.MSELoss(),
    data_loader=DataLoader(TensorDataset(X[:N], Y[:N]), batch_size=50),
    noise_multiplier=1.0, max_grad_norm=0.5, grad_sample_mode="ghost",
)
BASE_LR = 0.4
for _ in range(2):
    for xb, yb in loader:
        opt.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        for group in opt.param_groups:
            group["lr"] = BASE_LR * min(1.0, loss.item())
        opt.step()
model.eval()
with torch.no_grad():
    print("held-out mse", nn.functional.mse_loss(model(X[N:]), Y[N:]).item())
print("eps", engine.get_epsilon(1e-5))
