import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine


def epoch_over(model, optimizer, loader):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()


torch.manual_seed(33)
X, y = make_classification(1600, 16, n_informative=8, n_classes=3, random_state=11)
X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
train = TensorDataset(X[:1200], y[:1200])
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
engine = PrivacyEngine()

model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.4),
    data_loader=DataLoader(train, batch_size=30), noise_multiplier=1.3, max_grad_norm=1.5)
epoch_over(model, optimizer, loader)
print("after phase one", engine.get_epsilon(1e-5))

model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.Adam(model.parameters(), lr=2e-3),
    data_loader=DataLoader(train, batch_size=120), noise_multiplier=1.8, max_grad_norm=0.5)
for _ in range(3):
    epoch_over(model, optimizer, loader)
print("after phase two", engine.get_epsilon(1e-5))

with torch.no_grad():
    print("acc", (model(X[1200:]).argmax(1) == y[1200:]).float().mean().item())
torch.save(model._module.state_dict(), "phases.pt")
