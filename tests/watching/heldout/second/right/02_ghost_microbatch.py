import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager

torch.manual_seed(4)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
perm = torch.randperm(len(X))
X, y = X[perm], y[perm]

EPOCHS = 4
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-3)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, criterion, loader = engine.make_private(
    module=model, optimizer=optimizer, criterion=nn.CrossEntropyLoss(),
    data_loader=DataLoader(TensorDataset(X[:1280], y[:1280]), batch_size=80),
    noise_multiplier=1.0, max_grad_norm=1.0, grad_sample_mode="ghost")
lr_schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

for epoch in range(EPOCHS):
    model.train()
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=32,
                            optimizer=optimizer) as small:
        for xb, yb in small:
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    lr_schedule.step()

model.eval()
with torch.no_grad():
    acc = (model(X[1280:]).argmax(1) == y[1280:]).float().mean().item()
print(f"accuracy {acc:.3f}, epsilon {engine.get_epsilon(1e-5):.2f}")
torch.save(model._module.state_dict(), "ghost.pt")
