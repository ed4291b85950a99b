"""Splits each Poisson batch by hand and accumulates with virtual steps."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

CHUNK = 24
g = torch.Generator().manual_seed(41)
X = torch.randn(2200, 16, generator=g)
y = (X[:, :8].norm(dim=1) > X[:, 8:].norm(dim=1)).long()

net = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 2))
engine = PrivacyEngine(accountant="rdp")
net, optimizer, loader = engine.make_private(
    module=net, optimizer=torch.optim.Adam(net.parameters(), lr=5e-3),
    data_loader=DataLoader(TensorDataset(X[:1800], y[:1800]), batch_size=60),
    noise_multiplier=1.1, max_grad_norm=1.0,
)
for _ in range(3):
    for xb, yb in loader:
        chunks = list(zip(xb.split(CHUNK), yb.split(CHUNK)))
        for k, (xc, yc) in enumerate(chunks):
            optimizer.signal_skip_step(do_skip=k < len(chunks) - 1)
            nn.functional.cross_entropy(net(xc), yc).backward()
            optimizer.step()
            optimizer.zero_grad()
with torch.no_grad():
    print("acc", (net(X[1800:]).argmax(1) == y[1800:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
