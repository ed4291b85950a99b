"""Keep training as long as some of the budget is left."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

TARGET, DELTA = 2.5, 1e-5

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.4),
    data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
    target_epsilon=TARGET,
    target_delta=DELTA,
    epochs=3,
    max_grad_norm=1.0,
)
spent, epoch = 0.0, 0
while spent < TARGET:
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
    epoch += 1
    spent = engine.get_epsilon(DELTA)
with torch.no_grad():
    acc = (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item()
print(f"stopped after {epoch} epochs, acc {acc:.3f}")
