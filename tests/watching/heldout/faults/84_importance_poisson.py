"""Poisson sampling where the records of some regions are drawn more often."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset
from opacus import PrivacyEngine


class ImportancePoissonSampler(Sampler):
    def __init__(self, rates, steps):
        self.rates, self.steps = rates, steps

    def __len__(self):
        return self.steps

    def __iter__(self):
        for _ in range(self.steps):
            yield torch.nonzero(torch.rand(len(self.rates)) < self.rates).flatten().tolist()


def region_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    region = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 8, generator=g) + region[:, None] * 0.2
    return x, (x.sum(1) > 2.4).long(), region


def main():
    x, y, region = region_data(2000, 21)
    xt, yt, _ = region_data(500, 22)
    train = TensorDataset(x, y)
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=5e-3),
        data_loader=DataLoader(train, batch_size=50), noise_multiplier=1.0, max_grad_norm=1.0)
    q = loader.sample_rate
    rates = q * torch.tensor([0.7, 0.8, 1.0, 1.5])[region]
    focused = DataLoader(train, batch_sampler=ImportancePoissonSampler(rates, len(loader)),
                         collate_fn=loader.collate_fn)
    for _ in range(2):
        for xb, yb in focused:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("acc", (model(xt).argmax(1) == yt).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
