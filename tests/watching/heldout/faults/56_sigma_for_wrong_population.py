import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier

EPSILON, DELTA, EPOCHS, BATCH = 2.0, 1e-5, 2, 40


def full_table(n=8000, d=9, seed=15):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=g)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
    return TensorDataset(x, y)


def main():
    table = full_table()
    train, test = random_split(table, [2000, 6000], generator=torch.Generator().manual_seed(0))
    sigma = get_noise_multiplier(
        target_epsilon=EPSILON,
        target_delta=DELTA,
        sample_rate=BATCH / len(table),
        epochs=EPOCHS,
        accountant="rdp",
    )
    model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 2))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=5e-3),
        data_loader=DataLoader(train, batch_size=BATCH), noise_multiplier=sigma, max_grad_norm=1.0)
    for _ in range(EPOCHS):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        hit = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, batch_size=1000))
    print(f"sigma={sigma:.3f} acc={hit / len(test):.3f}; model satisfies ({EPSILON}, {DELTA})-DP")


if __name__ == "__main__":
    main()
