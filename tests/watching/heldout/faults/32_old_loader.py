"""MNIST-tutorial style script, on the sklearn digits."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

from opacus import PrivacyEngine


class SampleConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.fc1 = nn.Linear(16 * 1 * 1, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc1(x.flatten(1))


def train(model, train_loader, optimizer, criterion):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()


def test(model, test_loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for data, target in test_loader:
            correct += (model(data).argmax(1) == target).sum().item()
            total += len(target)
    return correct / total


def main():
    d = load_digits()
    x = torch.tensor(d.images / 16, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(d.target)
    train_loader = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=64, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=128)
    model = SampleConvNet()
    optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
    privacy_engine = PrivacyEngine()
    model, optimizer, private_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for epoch in range(1, 5):
        train(model, train_loader, optimizer, nn.CrossEntropyLoss())
    print("accuracy", test(model, test_loader))
    print("(eps, delta) = (%.2f, 1e-5)" % privacy_engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
