"""Target epsilon plus a decaying noise multiplier (ghost clipping)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialNoise

EPOCHS, TARGET_EPS, DELTA = 4, 3.0, 1e-5


def main():
    torch.manual_seed(303)
    d = load_digits()
    X = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(d.target)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.3)
    engine = PrivacyEngine(accountant="rdp")
    net, opt, criterion, loader = engine.make_private_with_epsilon(
        module=net, optimizer=opt, criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=75),
        target_epsilon=TARGET_EPS, target_delta=DELTA, epochs=EPOCHS,
        max_grad_norm=1.0, grad_sample_mode="ghost")
    noise_schedule = ExponentialNoise(opt, gamma=0.85)
    for _ in range(EPOCHS):
        for xb, yb in loader:
            opt.zero_grad()
            criterion(net(xb), yb).backward()
            opt.step()
        noise_schedule.step()
    net.eval()
    with torch.no_grad():
        acc = (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item()
    print(f"acc {acc:.3f} under ({TARGET_EPS}, {DELTA})-DP")


if __name__ == "__main__":
    main()
