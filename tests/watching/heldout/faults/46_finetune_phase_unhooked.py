import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer


def epoch_of(model, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()


def main():
    torch.manual_seed(31)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=net,
        optimizer=torch.optim.Adam(net.parameters(), lr=4e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for _ in range(3):
        epoch_of(model, opt, loader)

    # Phase 2: polish with plain SGD, same clipping and noise as before.
    polish = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.05),
        noise_multiplier=opt.noise_multiplier,
        max_grad_norm=opt.max_grad_norm,
        expected_batch_size=opt.expected_batch_size,
    )
    epoch_of(model, polish, loader)

    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("total privacy cost:", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
