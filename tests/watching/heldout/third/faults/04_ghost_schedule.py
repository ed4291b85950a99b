import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialGradClip


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 100)
        self.fc2 = nn.Linear(100, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def main():
    data, target = load_digits(return_X_y=True)
    data = torch.tensor(data, dtype=torch.float32) / 16
    target = torch.tensor(target)
    loader = DataLoader(TensorDataset(data[:1500], target[:1500]), batch_size=60)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, criterion, loader = engine.make_private(
        module=model, optimizer=optimizer, criterion=nn.CrossEntropyLoss(), data_loader=loader,
        noise_multiplier=1.0, max_grad_norm=1.0, grad_sample_mode="ghost")
    scheduler = ExponentialGradClip(optimizer, gamma=0.8)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
    model.eval()
    acc = (model(data[1500:]).argmax(1) == target[1500:]).float().mean()
    print("test acc %.3f, eps %.2f" % (acc, engine.get_epsilon(delta=1e-5)))
    torch.save(model.state_dict(), "ghost.pt")


main()
