import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class BatchScale(nn.Module):
    """Light replacement for BatchNorm (which Opacus rejects): no parameters, no
    buffers, just centres and scales the activations."""

    def forward(self, h):
        mean = h.mean(dim=0, keepdim=True)
        std = (h - mean).pow(2).mean(dim=0, keepdim=True).add(1e-3).sqrt()
        return (h - mean) / std


class Classifier(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = BatchScale()
        self.fc1 = nn.Linear(d, 24)
        self.fc2 = nn.Linear(24, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(self.norm(x))))


def transactions(n, seed, d=8):
    """Heavy-tailed amounts per category; label: is the first half of the categories dominant?"""
    r = np.random.default_rng(seed)
    amounts = r.lognormal(mean=0.0, sigma=1.6, size=(n, d)).astype(np.float32)
    label = amounts[:, : d // 2].mean(1) > amounts[:, d // 2 :].mean(1)
    return torch.from_numpy(amounts), torch.from_numpy(label.astype(np.int64))


class Trainer:
    def __init__(self, sigma=1.0, clip=1.0, batch_size=40, lr=0.3):
        X, y = transactions(1600, 0)
        self.test = transactions(400, 1)
        self.model = Classifier(X.shape[1])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.loader = DataLoader(TensorDataset(X, y), batch_size=batch_size)
        self.engine = PrivacyEngine(accountant="rdp")
        self.model, self.optimizer, self.loader = self.engine.make_private(
            module=self.model,
            optimizer=self.optimizer,
            data_loader=self.loader,
            noise_multiplier=sigma,
            max_grad_norm=clip,
        )
        self.loss_fn = nn.CrossEntropyLoss()

    def fit(self, epochs):
        for _ in range(epochs):
            self.model.train()
            for x, y in self.loader:
                self.optimizer.zero_grad()
                self.loss_fn(self.model(x), y).backward()
                self.optimizer.step()
        return self

    @torch.no_grad()
    def score(self):
        self.model.eval()
        x, y = self.test
        return (self.model(x).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    t = Trainer().fit(epochs=2)
    print("acc", t.score(), "eps", t.engine.get_epsilon(1e-5))
