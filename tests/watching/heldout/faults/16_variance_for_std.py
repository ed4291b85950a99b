"""DP-SGD on digits with an explicit Gaussian mechanism."""
import types

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def gaussian_mechanism(self):
    """N(0, (sigma*C)^2) on each clipped sum."""
    variance = (self.noise_multiplier * self.max_grad_norm) ** 2
    for p in self.params:
        noise = variance * torch.randn_like(p.summed_grad)
        p.grad = (p.summed_grad + noise).view_as(p)


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=0.8,
        max_grad_norm=0.5,
    )
    optimizer.add_noise = types.MethodType(gaussian_mechanism, optimizer)
    ce = nn.CrossEntropyLoss()
    for epoch in range(4):
        for xb, yb in loader:
            optimizer.zero_grad()
            ce(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        acc = (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item()
    print(f"acc={acc:.3f} eps={engine.get_epsilon(1e-5):.2f}")


if __name__ == "__main__":
    main()
