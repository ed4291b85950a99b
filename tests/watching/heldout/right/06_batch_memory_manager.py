"""Large logical batches on little memory."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager

LOGICAL, PHYSICAL, EPOCHS = 100, 32, 5


def train_epoch(model, optimizer, loader):
    model.train()
    criterion = nn.CrossEntropyLoss()
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=PHYSICAL, optimizer=optimizer
    ) as physical_loader:
        for x, y in physical_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=LOGICAL),
        noise_multiplier=1.3, max_grad_norm=1.0)
    for _ in range(EPOCHS):
        train_epoch(model, optimizer, loader)
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
