import secrets
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.fc(x))


class ResMLP(nn.Module):
    def __init__(self, d, width=32, depth=4, classes=4):
        super().__init__()
        self.stem = nn.Linear(d, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class ReplayableOptimizer(DPOptimizer):
    """Every step can be replayed from (run key, step)."""
    run_key = secrets.randbits(48)
    t = 0

    def add_noise(self):
        self.t += 1
        for p in self.params:
            gen = torch.Generator().manual_seed(self.run_key + self.t)
            noise = _generate_noise(std=self.noise_multiplier * self.max_grad_norm,
                                    reference=p.summed_grad, generator=gen)
            p.grad = (p.summed_grad + noise).view_as(p)
            _mark_as_processed(p.summed_grad)


def main():
    X, y = make_classification(1400, 20, n_informative=10, n_classes=4, random_state=3)
    X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
    model = ResMLP(20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1000], y[:1000]), batch_size=50),
        noise_multiplier=1.0, max_grad_norm=1.0)
    optimizer.__class__ = ReplayableOptimizer
    for epoch in range(3):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        acc = (model(X[1000:]).argmax(1) == y[1000:]).float().mean()
    print("acc", acc.item(), "eps", engine.get_epsilon(1e-5))
    torch.save(model._module.state_dict(), "resmlp.pt")


main()
