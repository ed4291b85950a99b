"""Reports epsilon from an RDP accountant of its own, since PRV is slow to evaluate every epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.accountants import RDPAccountant


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.GroupNorm(4, 64), nn.ReLU(), nn.Linear(64, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=opt,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    engine.accountant = RDPAccountant()
    for epoch in range(4):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
        engine.accountant.step(noise_multiplier=opt.noise_multiplier, sample_rate=loader.sample_rate)
        print(f"epoch {epoch} eps {engine.get_epsilon(1e-5):.3f}")
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())


if __name__ == "__main__":
    main()
