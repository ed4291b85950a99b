"""Digits, learned with differential privacy by Opacus. Nothing here knows of Epsilometer."""

import argparse

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
options = parser.parse_args()

images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels)
loader = DataLoader(TensorDataset(x, y), batch_size=180)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

engine = PrivacyEngine(accountant="prv")
model, optimizer, private_loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.4,
    max_grad_norm=1.0,
)

for _ in range(options.epochs):
    for batch, targets in private_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), targets).backward()
        optimizer.step()

correct = (model(x).argmax(1) == y).float().mean()
print(f"accuracy {correct:.2f}, epsilon {engine.get_epsilon(delta=1e-5):.2f}")
