"""The plain Opacus tutorial on the sklearn digits."""
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=64, shuffle=True)
test_X, test_y = X[1500:], y[1500:]

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = optim.SGD(model.parameters(), lr=0.5)
privacy_engine = PrivacyEngine()
model, optimizer, train_loader = privacy_engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=train_loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print("acc", (model(test_X).argmax(1) == test_y).float().mean().item())
print("eps", privacy_engine.get_epsilon(delta=1e-5))
