import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_breast_cancer
from opacus import PrivacyEngine
from opacus.schedulers import LambdaNoise

torch.manual_seed(2)
EPOCHS = 6
X, y = load_breast_cancer(return_X_y=True)
X = torch.log1p(torch.tensor(X, dtype=torch.float32)) / 5
y = torch.tensor(y)
perm = torch.randperm(len(X))
train_idx, test_idx = perm[:460], perm[460:]

model = nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, nesterov=True, momentum=0.7)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[train_idx], y[train_idx]), batch_size=46),
    epochs=EPOCHS,
    target_epsilon=2.0,
    target_delta=1e-4,
    max_grad_norm=0.8,
)
scheduler = LambdaNoise(optimizer, noise_lambda=lambda e: max(0.6, 1.0 - 0.08 * e))

for epoch in range(EPOCHS):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
    scheduler.step()

model.eval()
with torch.no_grad():
    acc = (model(X[test_idx]).argmax(1) == y[test_idx]).float().mean().item()
print(f"accuracy {acc:.3f}")
torch.save(model._module.state_dict(), "decay.pt")
