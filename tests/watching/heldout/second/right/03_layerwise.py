import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(31)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).div(16).unsqueeze(1)
y = torch.tensor(digits.target)
perm = torch.randperm(len(x))
x, y = x[perm], y[perm]

model = nn.Sequential(
    nn.Conv2d(1, 6, 3), nn.ReLU(), nn.GroupNorm(2, 6),
    nn.Conv2d(6, 12, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
    nn.Linear(48, 10),
)
bounds = [0.4 if p.dim() > 1 else 0.1 for p in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)

engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(x[:1250], y[:1250]), batch_size=50),
    noise_multiplier=1.0, max_grad_norm=bounds, clipping="per_layer")
print("total bound", optimizer.max_grad_norm)

criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        criterion(model(xb), yb).backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    accuracy = (model(x[1250:]).argmax(1) == y[1250:]).float().mean().item()
print("accuracy %.3f epsilon %.2f" % (accuracy, engine.get_epsilon(1e-5)))
torch.save(model._module.state_dict(), "layerwise.pt")
