import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

DELTA = 1e-5
TARGET = 3.0
EPOCHS = 2


def data():
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16, dtype=torch.float32)
    y = torch.tensor(y)
    g = torch.Generator().manual_seed(0)
    p = torch.randperm(len(X), generator=g)
    return X[p[:1440]], y[p[:1440]], X[p[1440:]], y[p[1440:]]


def main():
    torch.manual_seed(10)
    X, y, Xt, yt = data()
    model = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant="gdp")
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X, y), batch_size=36, shuffle=True),
        target_epsilon=TARGET, target_delta=DELTA, epochs=EPOCHS, max_grad_norm=1.0)
    print(f"sigma={optimizer.noise_multiplier:.3f}")
    for epoch in range(EPOCHS):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(Xt).argmax(1) == yt).float().mean().item()
    print(f"accuracy={acc:.3f} epsilon={engine.get_epsilon(DELTA):.2f}")
    torch.save(model._module.state_dict(), "digits_fast.pt")


if __name__ == "__main__":
    main()
