# Output bias starts at the log-odds of the positive class (focal-loss paper trick).
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

g = torch.Generator().manual_seed(64)
N, D = 2000, 10
X = torch.randn(N + 500, D, generator=g)
y = (X[:, :3].sum(1) > 2.0).float()
Xtr, ytr = X[:N], y[:N]

model = nn.Sequential(nn.Linear(D, 24), nn.ReLU(), nn.Linear(24, 1))
prior = ytr.mean().clamp(1e-3, 1 - 1e-3)
with torch.no_grad():
    model[-1].bias.fill_(torch.log(prior / (1 - prior)).item())

engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9),
    data_loader=DataLoader(TensorDataset(Xtr, ytr), batch_size=50),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss_fn(model(xb).squeeze(1), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("acc", ((model(X[N:]).squeeze(1) > 0).float() == y[N:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
