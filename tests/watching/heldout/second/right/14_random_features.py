import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_wine
from opacus import PrivacyEngine


class RowStandardise(nn.Module):
    def forward(self, x):
        return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)


class FourierFeatures(nn.Module):
    def __init__(self, d, m, bandwidth):
        super().__init__()
        self.register_buffer("freq", torch.randn(d, m) / bandwidth)
        self.register_buffer("phase", 2 * math.pi * torch.rand(m))

    def forward(self, x):
        return torch.cos(x @ self.freq + self.phase) * (2.0 / self.phase.numel()) ** 0.5


torch.manual_seed(50)
UNITS = torch.tensor([1., 1., 1., 10., 50., 1., 1., .1, 1., 3., .3, 1., 300.])
X, y = load_wine(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32) / UNITS
y = torch.tensor(y)
perm = torch.randperm(len(X))
tr, te = perm[:130], perm[130:]

model = nn.Sequential(RowStandardise(), FourierFeatures(13, 128, 3.0), nn.Linear(128, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[tr], y[tr]), batch_size=26),
    epochs=15, target_epsilon=8.0, target_delta=1e-3, max_grad_norm=0.5)
for epoch in range(15):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    acc = (model(X[te]).argmax(1) == y[te]).float().mean().item()
print("acc", acc, "eps", engine.get_epsilon(1e-3))
torch.save(model._module.state_dict(), "rff.pt")
