import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def train_epoch(model, loader, opt, ce):
    total, count = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = ce(model(x), y)
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
        count += len(x)
    return total / count


def main():
    torch.manual_seed(4)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    opt = torch.optim.SGD(model.parameters(), lr=3.0, momentum=0.9)
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=opt,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=100),
        noise_multiplier=1.2, max_grad_norm=1.0)
    scheduler = ReduceLROnPlateau(opt.original_optimizer, factor=0.3, patience=0, threshold=0.05)
    ce = nn.CrossEntropyLoss()
    for _ in range(8):
        train_loss = train_epoch(model, loader, opt, ce)
        scheduler.step(train_loss)
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
