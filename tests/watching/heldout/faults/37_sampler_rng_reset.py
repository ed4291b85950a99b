import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class DataModule:
    """Owns the loader and its generator; every epoch starts from the same state so that
    runs can be resumed at epoch boundaries."""

    def __init__(self, dataset, batch_size, seed=0):
        self.generator = torch.Generator()
        self.seed = seed
        self.loader = DataLoader(dataset, batch_size=batch_size, generator=self.generator)

    def epoch(self, loader):
        self.generator.manual_seed(self.seed)
        yield from loader


def build_net():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(8 * 16, 10),
    )


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    dm = DataModule(TensorDataset(X[:1500], y[:1500]), batch_size=60)
    net = build_net()
    engine = PrivacyEngine()
    net, opt, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9),
        data_loader=dm.loader, noise_multiplier=1.1, max_grad_norm=1.0)
    for _ in range(4):
        for xb, yb in dm.epoch(loader):
            opt.zero_grad()
            nn.functional.cross_entropy(net(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("acc", (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
