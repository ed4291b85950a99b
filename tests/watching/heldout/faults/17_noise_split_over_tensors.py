import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer


class BudgetedNoiseOptimizer(DPOptimizer):
    """Spreads the noise budget evenly over the parameter tensors."""

    def add_noise(self):
        std = self.noise_multiplier * self.max_grad_norm / math.sqrt(len(self.params))
        for p in self.params:
            p.grad = p.summed_grad + torch.normal(0.0, std, size=p.shape)


def synthetic(n, d, seed):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, d, generator=g)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).long()
    return X, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sigma", default=1.0, type=float)
    parser.add_argument("--clip", default=1.0, type=float)
    parser.add_argument("--q", default=0.025, type=float)
    parser.add_argument("--epochs", default=2, type=int)
    a = parser.parse_args()

    X, y = synthetic(2400, 10, seed=0)
    Xt, yt = synthetic(600, 10, seed=1)
    loader = DPDataLoader(TensorDataset(X, y), sample_rate=a.q)
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    model = GradSampleModule(net)
    accountant = RDPAccountant()
    opt = BudgetedNoiseOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5),
        noise_multiplier=a.sigma, max_grad_norm=a.clip, expected_batch_size=int(a.q * len(X)),
    )
    opt.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=a.q))
    for _ in range(a.epochs):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("test", (model(Xt).argmax(1) == yt).float().mean().item())
    print("eps", accountant.get_epsilon(delta=1e-5))


main()
