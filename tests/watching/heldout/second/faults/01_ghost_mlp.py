import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialGradClip

torch.manual_seed(3)

images, labels = load_digits(return_X_y=True)
x = torch.tensor(images / 16.0, dtype=torch.float32)
y = torch.tensor(labels, dtype=torch.long)
order = torch.randperm(len(x))
train_idx, test_idx = order[:1280], order[1280:]
train = TensorDataset(x[train_idx], y[train_idx])

EPOCHS, BATCH = 4, 64
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.5)
criterion = nn.CrossEntropyLoss()

engine = PrivacyEngine(accountant="rdp")
model, optimizer, criterion, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    criterion=criterion,
    data_loader=DataLoader(train, batch_size=BATCH),
    noise_multiplier=0.9,
    max_grad_norm=1.5,
    grad_sample_mode="ghost",
)
clip_schedule = ExponentialGradClip(optimizer, gamma=0.6)

for epoch in range(EPOCHS):
    model.train()
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    clip_schedule.step()
    model.eval()
    with torch.no_grad():
        acc = (model(x[test_idx]).argmax(1) == y[test_idx]).float().mean()
    print(f"epoch {epoch}: test acc {acc:.3f}, eps {engine.get_epsilon(1e-5):.2f}")

torch.save(model._module.state_dict(), "digits_mlp.pt")
