"""Static batch shapes: Poisson batches are padded so that the compiled graph never changes."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import default_collate
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

STATIC_BATCH = 64


def padded_collate(samples):
    while len(samples) < STATIC_BATCH:
        samples.append(random.choice(samples))
    return default_collate(samples)


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.8)
    engine = PrivacyEngine()
    net, opt, dl = engine.make_private(
        module=net, optimizer=opt,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50,
                               collate_fn=padded_collate),
        noise_multiplier=1.1, max_grad_norm=1.0,
    )
    lossf = nn.CrossEntropyLoss()
    for epoch in range(3):
        for xb, yb in dl:
            opt.zero_grad()
            lossf(net(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print((net(X[1500:]).argmax(1) == y[1500:]).float().mean().item(), engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
