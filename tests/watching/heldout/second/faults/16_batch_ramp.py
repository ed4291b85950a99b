import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader

STAGES = [(32, 1), (64, 2), (128, 4)]


def prepare(seed=0):
    X, y = make_classification(n_samples=1280 + 400, n_features=18, n_informative=9,
                               n_classes=3, random_state=seed)
    X = torch.tensor(X, dtype=torch.float32) / 4
    y = torch.tensor(y)
    return TensorDataset(X[:1280], y[:1280]), X[1280:], y[1280:]


def run_epoch(model, optimizer, loader):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()


def main():
    torch.manual_seed(0)
    train, xt, yt = prepare()
    model = nn.Sequential(nn.Linear(18, 40), nn.GELU(), nn.Linear(40, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(train, batch_size=STAGES[0][0]),
        noise_multiplier=1.1, max_grad_norm=1.0)

    for size, epochs in STAGES:
        if size != STAGES[0][0]:
            loader = DPDataLoader(train, sample_rate=size / len(train))
            optimizer.expected_batch_size = size
        for _ in range(epochs):
            run_epoch(model, optimizer, loader)
        model.eval()
        with torch.no_grad():
            acc = (model(xt).argmax(1) == yt).float().mean().item()
        print(f"batch {size}: acc {acc:.3f} eps {engine.get_epsilon(1e-5):.3f}")
    torch.save(model._module.state_dict(), "ramp.pt")


if __name__ == "__main__":
    main()
