import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_wine
from opacus import PrivacyEngine

SCALES = torch.tensor([14., 5., 3., 30., 150., 4., 5., 1., 4., 12., 2., 4., 1600.])


def private_fit(x, y, epochs=10, batch=25):
    model = nn.Sequential(nn.Linear(13, 20), nn.ReLU(), nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=batch),
        noise_multiplier=1.4, max_grad_norm=0.8)
    loss_fn = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss_fn(model(xb), yb).backward()
            optimizer.step()
    return model, engine


def export(model, path):
    layers = dict(model._module.named_parameters())
    torch.save({"format": 1, "layers": layers}, path)


if __name__ == "__main__":
    torch.manual_seed(70)
    X, y = load_wine(return_X_y=True)
    X = torch.tensor(X, dtype=torch.float32) / SCALES
    y = torch.tensor(y)
    perm = torch.randperm(len(X))
    model, engine = private_fit(X[perm[:125]], y[perm[:125]])
    model.eval()
    with torch.no_grad():
        acc = (model(X[perm[125:]]).argmax(1) == y[perm[125:]]).float().mean().item()
    print("accuracy", acc, "eps", engine.get_epsilon(1e-3))
    export(model, "wine_layers.pt")
