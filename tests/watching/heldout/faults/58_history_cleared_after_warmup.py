"""Warm-up epochs run with a low learning rate and are not meant to count."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager


def one_epoch(model, opt, loader):
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=25, optimizer=opt) as safe:
        for xb, yb in safe:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=opt,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)

    one_epoch(model, opt, loader)            # warm-up
    engine.accountant.history.clear()

    for group in opt.param_groups:
        group["lr"] = 0.2
    for _ in range(3):
        one_epoch(model, opt, loader)
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
