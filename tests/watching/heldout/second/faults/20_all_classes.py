import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(19)
N_CLASSES, STEPS = 10, 60

raw = load_digits()
X = torch.tensor(raw.data / 16.0, dtype=torch.float32)
y = torch.tensor(raw.target)
perm = torch.randperm(len(X))
X, y = X[perm], y[perm]


def complete_batches(loader):
    while True:
        for xb, yb in loader:
            if torch.bincount(yb, minlength=N_CLASSES).min() > 0:
                yield xb, yb


model = nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, N_CLASSES))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:1200], y[:1200]), batch_size=30),
    noise_multiplier=0.9, max_grad_norm=1.0)

batches = complete_batches(loader)
for step in range(STEPS):
    xb, yb = next(batches)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(xb), yb).backward()
    optimizer.step()
    scheduler.step()

model.eval()
with torch.no_grad():
    acc = (model(X[1200:]).argmax(1) == y[1200:]).float().mean().item()
print("acc", acc, "eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "classes.pt")
