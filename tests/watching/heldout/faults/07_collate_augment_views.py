#!/usr/bin/env python
"""Augmentation multiplicity: every sampled image enters the batch with 4 shifted copies."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

N_VIEWS = 4


def shift(img):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(img, (dx, dy), (-2, -1))


def augment_collate(samples):
    xs, ys = [], []
    for img, label in samples:
        xs.extend(shift(img) for _ in range(N_VIEWS))
        ys.extend([label] * N_VIEWS)
    return torch.stack(xs), torch.stack(ys)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 16, 10),
    )


def main():
    torch.manual_seed(123)
    d = load_digits()
    x = torch.tensor(d.images / 16, dtype=torch.float32)[:, None]
    y = torch.tensor(d.target)
    loader = DataLoader(
        TensorDataset(x[:1400], y[:1400]), batch_size=40, collate_fn=augment_collate
    )
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader,
        noise_multiplier=1.0, max_grad_norm=1.0,
    )
    ce = nn.CrossEntropyLoss()
    for _ in range(2):
        for xb, yb in loader:
            optimizer.zero_grad()
            ce(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        print("acc", (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
