import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.layers import DPLSTM


class Forecaster(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.lstm = DPLSTM(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1]).squeeze(1)


def series(n, seed, length=8):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(length + 1).float()
    speed = 0.2 + 0.6 * torch.rand(n, 1, generator=g)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    s = torch.sin(speed * t + phase) + 0.05 * torch.randn(n, length + 1, generator=g)
    x = torch.stack([s[:, :-1], torch.cos(speed * t[:-1] + phase)], 2)
    return x, s[:, -1]


torch.manual_seed(25)
x, y = series(800, 0)
xv, yv = series(200, 1)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(x, y), batch_size=40),
    target_epsilon=5.0, target_delta=1e-5, epochs=3, max_grad_norm=1.0)
huber = nn.SmoothL1Loss()
for epoch in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        huber(model(xb), yb).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print("validation huber", huber(model(xv), yv).item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "forecaster.pt")
