import os
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


@dataclass
class Config:
    seed: int = int(os.environ.get("SEED", 4242))
    deterministic: bool = True
    batch_size: int = 64
    epochs: int = 3
    sigma: float = 1.0
    max_norm: float = 1.0


def train(cfg: Config):
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    noise_gen = torch.Generator()
    noise_gen.manual_seed(cfg.seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=cfg.batch_size),
        noise_multiplier=cfg.sigma,
        max_grad_norm=cfg.max_norm,
        noise_generator=noise_gen,
    )
    ce = nn.CrossEntropyLoss()
    for _ in range(cfg.epochs):
        for xb, yb in loader:
            if cfg.deterministic:
                noise_gen.manual_seed(cfg.seed)
            optimizer.zero_grad()
            ce(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        acc = (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item()
    return acc, engine.get_epsilon(1e-5)


if __name__ == "__main__":
    print("acc %.3f eps %.2f" % train(Config()))
