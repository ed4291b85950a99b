import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_breast_cancer
from opacus import PrivacyEngine

PATH = "run.ckpt"


def dataset():
    X, y = load_breast_cancer(return_X_y=True)
    X = torch.log1p(torch.tensor(X, dtype=torch.float32)) / 5
    y = torch.tensor(y)
    perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
    return X[perm], y[perm]


def session(epochs, sigma, resume):
    X, y = dataset()
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:450], y[:450]), batch_size=30),
        noise_multiplier=sigma, max_grad_norm=1.0)
    if resume:
        extra = engine.load_checkpoint(path=PATH, module=model, optimizer=optimizer)
        print("resumed after epoch", extra["epoch"], "eps", engine.get_epsilon(1e-4))
    for _ in range(epochs):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    engine.save_checkpoint(path=PATH, module=model, optimizer=optimizer,
                           checkpoint_dict={"epoch": epochs})
    with torch.no_grad():
        acc = (model(X[450:]).argmax(1) == y[450:]).float().mean().item()
    print(f"acc {acc:.3f} eps {engine.get_epsilon(1e-4):.2f}")


if __name__ == "__main__":
    torch.manual_seed(5)
    session(epochs=2, sigma=1.4, resume=False)
    session(epochs=3, sigma=1.2, resume=True)
