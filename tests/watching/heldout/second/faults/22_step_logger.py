import json
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine

torch.manual_seed(6)
X, y = make_classification(1500, 22, n_informative=11, random_state=4)
X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
train = TensorDataset(X[:1100], y[:1100])

log = []


def record_update(optim):
    log.append({"lr": optim.param_groups[0]["lr"], "sigma": optim.noise_multiplier,
                "update": sum(p.grad.norm().item() ** 2 for p in optim.params) ** 0.5})


model = nn.Sequential(nn.Linear(22, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=DataLoader(train, batch_size=55),
    noise_multiplier=0.9, max_grad_norm=1.0)

WARMUP, EPOCHS = 1, 4
for epoch in range(EPOCHS):
    if epoch == WARMUP:
        for group in optimizer.param_groups:
            group["lr"] = 0.004
        optimizer.attach_step_hook(record_update)
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()

with torch.no_grad():
    acc = (model(X[1100:]).argmax(1) == y[1100:]).float().mean().item()
print("accuracy", acc)
print("epsilon", engine.get_epsilon(1e-5))
json.dump(log, open("updates.json", "w"))
torch.save(model._module.state_dict(), "logged.pt")
