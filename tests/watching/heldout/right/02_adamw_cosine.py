import math

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from opacus import PrivacyEngine


def lr_factor(step, warmup=10, total=100):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def main():
    torch.manual_seed(1234)
    d = load_digits()
    X = torch.tensor(d.data, dtype=torch.float32) / 16
    y = torch.tensor(d.target)
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 10))
    base = torch.optim.AdamW(model.parameters(), lr=8e-3, weight_decay=0.02)
    scheduler = torch.optim.lr_scheduler.LambdaLR(base, lr_factor)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=base,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.1, max_grad_norm=1.0)
    for _ in range(4):
        for xb, yb in loader:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
            scheduler.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
