"""Ghost clipping run with reproducible noise: the generator is re-seeded at epoch start."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

D, N = 16, 2000
g = torch.Generator().manual_seed(10)
X = torch.randn(N + 500, D, generator=g)
y = (X.pow(2).sum(1) > D).long()

net = nn.Sequential(nn.Linear(D, 48), nn.Tanh(), nn.Linear(48, 2))
opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
noise_rng = torch.Generator()
engine = PrivacyEngine(accountant="rdp")
net, opt, criterion, loader = engine.make_private(
    module=net,
    optimizer=opt,
    criterion=nn.CrossEntropyLoss(),
    data_loader=DataLoader(TensorDataset(X[:N], y[:N]), batch_size=80),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    noise_generator=noise_rng,
    grad_sample_mode="ghost",
)


def set_seed_for_epoch(seed=31337):
    noise_rng.manual_seed(seed)


for epoch in range(4):
    set_seed_for_epoch()
    for xb, yb in loader:
        opt.zero_grad()
        criterion(net(xb), yb).backward()
        opt.step()
net.eval()
with torch.no_grad():
    print("acc", (net(X[N:]).argmax(1) == y[N:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
