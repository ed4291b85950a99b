import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

# Small Poisson batches give useless, noisy updates; they are skipped.
MIN_BATCH = 16


def fit(model, optimizer, loader, epochs):
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for x, y in loader:
            if len(x) < MIN_BATCH:
                continue
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    engine = PrivacyEngine(accountant="rdp")
    net, opt, loader = engine.make_private(
        module=net, optimizer=opt, data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=20),
        noise_multiplier=0.9, max_grad_norm=1.0)
    fit(net, opt, loader, epochs=2)
    with torch.no_grad():
        print("acc", (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))
