"""Random oversampling of the rare class before the private loader is built."""
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset
from opacus import PrivacyEngine

g = torch.Generator().manual_seed(2)
X = torch.randn(1800, 10, generator=g)
y = ((X[:, 0] - X[:, 1]) > 1.7).long()
X_test = torch.randn(400, 10, generator=g)
y_test = ((X_test[:, 0] - X_test[:, 1]) > 1.7).long()

base = TensorDataset(X, y)
rare = torch.nonzero(y == 1).flatten().tolist()
FACTOR = 4
train = ConcatDataset([base] + [Subset(base, rare)] * (FACTOR - 1))

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
privacy_engine = PrivacyEngine()
model, optimizer, loader = privacy_engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(train, batch_size=50, shuffle=True),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        criterion(model(xb), yb).backward()
        optimizer.step()

with torch.no_grad():
    pred = model(X_test).argmax(1)
print("recall", ((pred == 1) & (y_test == 1)).sum().item() / (y_test == 1).sum().item())
print("eps", privacy_engine.get_epsilon(1e-5))
