"""Greedy batch selection: look at a few candidate batches, train on the one we are worst at."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class HardBatchTrainer:
    def __init__(self, model, optimizer, loader, candidates=3):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.k = candidates
        self.ce = nn.CrossEntropyLoss()

    @torch.no_grad()
    def difficulty(self, batch):
        return self.ce(self.model(batch[0]), batch[1]).item()

    def pick(self):
        batches = [next(iter(self.loader)) for _ in range(self.k)]
        return max(batches, key=self.difficulty)

    def run(self, steps):
        for _ in range(steps):
            x, y = self.pick()
            self.optimizer.zero_grad()
            self.ce(self.model(x), y).backward()
            self.optimizer.step()


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    engine = PrivacyEngine(accountant="rdp")
    net, opt, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.4),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.1, max_grad_norm=1.0)
    HardBatchTrainer(net, opt, loader).run(80)
    with torch.no_grad():
        print("acc", (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
