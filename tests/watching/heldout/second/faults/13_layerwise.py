import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(31)
CLIP = 0.5
SIGMA = 1.0

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32).div(16).view(-1, 1, 8, 8)
y = torch.tensor(digits.target)
perm = torch.randperm(len(x))
x, y = x[perm], y[perm]
x_train, y_train, x_test, y_test = x[:1250], y[:1250], x[1250:], y[1250:]

model = nn.Sequential(
    nn.Conv2d(1, 6, 3), nn.ReLU(),
    nn.Conv2d(6, 12, 3), nn.ReLU(),
    nn.AvgPool2d(2), nn.Flatten(),
    nn.Linear(48, 32), nn.ReLU(),
    nn.Linear(32, 10),
)
n_tensors = len(list(model.parameters()))

optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(x_train, y_train), batch_size=50),
    noise_multiplier=SIGMA,
    max_grad_norm=[CLIP] * n_tensors,
    clipping="per_layer",
)
optimizer.max_grad_norm = CLIP

criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
print("accuracy: %.3f" % accuracy)
print("epsilon: %.2f" % engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "layerwise.pt")
