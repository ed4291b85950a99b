"""Random augmentation inside the dataset: every sampled image appears once, randomly shifted and jittered."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class AugmentedDigits(Dataset):
    def __init__(self, images, labels, augment):
        self.images, self.labels, self.augment = images, labels, augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = self.images[i]
        if self.augment:
            x = torch.roll(x, int(torch.randint(-1, 2, ())), dims=-1)
            x = (x + 0.05 * torch.randn_like(x)).clamp(0, 1)
        return x.unsqueeze(0), self.labels[i]


def main():
    d = load_digits()
    X, y = torch.tensor(d.images / 16, dtype=torch.float32), torch.tensor(d.target)
    train, test = AugmentedDigits(X[:1500], y[:1500], True), AugmentedDigits(X[1500:], y[1500:], False)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(72, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5),
        data_loader=DataLoader(train, batch_size=60), noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        model.train()
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == t).sum().item() for x, t in DataLoader(test, batch_size=100))
    print("acc", hits / len(test))
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
