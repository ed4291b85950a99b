# Pure-DP habits: Laplace noise of the same standard deviation instead of Gaussian noise.
import math

import torch
from torch import nn
from torch.distributions import Laplace
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping


class LaplaceDPOptimizer(DPOptimizerFastGradientClipping):
    def add_noise(self):
        std = self.noise_multiplier * self.max_grad_norm
        dist = Laplace(0.0, std / math.sqrt(2.0))
        for p in self.params:
            p.grad = (p.summed_grad + dist.sample(p.shape)).view_as(p)


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 2, generator=g) * 6 - 3
    y = (torch.sin(x[:, 0]) > x[:, 1]).long()
    return x, y


def main():
    x, y = make_data(2500, 4)
    xv, yv = make_data(500, 5)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    engine = PrivacyEngine()
    model, optimizer, criterion, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9),
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=50),
        noise_multiplier=1.0,
        max_grad_norm=0.8,
        grad_sample_mode="ghost",
    )
    optimizer.__class__ = LaplaceDPOptimizer
    for _ in range(2):
        for xb, yb in loader:
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("val", (model(xv).argmax(1) == yv).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
