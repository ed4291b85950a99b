"""Ghost clipping with a decaying clipping threshold."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialGradClip


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 10, 3)
        self.c2 = nn.Conv2d(10, 16, 3)
        self.out = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = torch.relu(self.c1(x))
        x = torch.relu(self.c2(x))
        return self.out(x.flatten(1))


def main():
    torch.manual_seed(2024)
    data = load_digits()
    X = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(data.target)
    loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=75)

    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    engine = PrivacyEngine()
    model, optimizer, criterion, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        criterion=nn.CrossEntropyLoss(),
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
    )
    clip_scheduler = ExponentialGradClip(optimizer, gamma=0.6)
    for epoch in range(4):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        clip_scheduler.step()

    model.eval()
    with torch.no_grad():
        print("test acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
