import torch
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from opacus import PrivacyEngine


def prepare(n_train=1500):
    X, y = load_digits(return_X_y=True)
    scaler = StandardScaler().fit(X[:n_train])
    Z = torch.tensor(scaler.transform(X), dtype=torch.float32)
    y = torch.tensor(y)
    return TensorDataset(Z[:n_train], y[:n_train]), (Z[n_train:], y[n_train:]), scaler


def main():
    train, (Xt, yt), scaler = prepare()
    model = nn.Linear(64, 10)
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.2),
        data_loader=DataLoader(train, batch_size=60), noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(4):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("acc", (model(Xt).argmax(1) == yt).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))
    return {"weights": model._module.state_dict(), "mean": scaler.mean_, "scale": scaler.scale_}


if __name__ == "__main__":
    main()
