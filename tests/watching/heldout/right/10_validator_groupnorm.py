"""A BatchNorm model repaired with ModuleValidator.fix (GroupNorm)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator


def conv_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_block(1, 8), conv_block(8, 16))
        self.classifier = nn.Linear(16 * 4, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def main():
    torch.manual_seed(77)
    d = load_digits()
    X = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(d.target)
    model = Net()
    if not ModuleValidator.is_valid(model):
        model = ModuleValidator.fix(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.2)
    for _ in range(3):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
