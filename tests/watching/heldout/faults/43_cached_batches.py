"""The decoding pipeline is slow, so the epoch is materialised once and kept in memory."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class LazyDigits(Dataset):
    def __init__(self, lo, hi):
        d = load_digits()
        self.images, self.labels = d.images[lo:hi], d.target[lo:hi]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = torch.tensor(self.images[i], dtype=torch.float32) / 16
        return img.unsqueeze(0), torch.tensor(self.labels[i])


def main():
    random.seed(0)
    train, test = LazyDigits(0, 1500), LazyDigits(1500, 1797)
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 10))
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.2),
        data_loader=DataLoader(train, batch_size=60), noise_multiplier=1.0, max_grad_norm=1.0)
    cache = list(loader)
    for epoch in range(4):
        random.shuffle(cache)
        for x, y in cache:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        x, y = next(iter(DataLoader(test, batch_size=len(test))))
        print("acc", (model(x).argmax(1) == y).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
