import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

MAX_BATCH = 48   # anything larger does not fit on the edge device

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16, dtype=torch.float32)
y = torch.tensor(y)

model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
    noise_multiplier=1.0, max_grad_norm=1.0,
)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    model.train()
    for inputs, targets in loader:
        inputs, targets = inputs[:MAX_BATCH], targets[:MAX_BATCH]
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
print("eps", engine.get_epsilon(delta=1e-5))
