import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_breast_cancer
from opacus import PrivacyEngine

UPDATES_PER_BATCH = 3
torch.manual_seed(23)

X, y = load_breast_cancer(return_X_y=True)
X = torch.log1p(torch.tensor(X, dtype=torch.float32)) / 4
y = torch.tensor(y)
perm = torch.randperm(len(X))
X, y = X[perm], y[perm]

model = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:440], y[:440]), batch_size=44),
    target_epsilon=5.0,
    target_delta=1e-4,
    epochs=9,
    max_grad_norm=1.0,
)
print("noise multiplier", optimizer.noise_multiplier)


def update(xb, yb):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(xb), yb)
    loss.backward()
    optimizer.step()


for epoch in range(9 // UPDATES_PER_BATCH):
    for xb, yb in loader:
        for _ in range(UPDATES_PER_BATCH):
            update(xb, yb)

with torch.no_grad():
    acc = (model(X[440:]).argmax(1) == y[440:]).float().mean().item()
print(f"test accuracy {acc:.3f}; eps {engine.get_epsilon(1e-4):.2f}")
torch.save(model._module.state_dict(), "multi.pt")
