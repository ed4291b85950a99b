"""Two hospitals, two models: the engines see disjoint records."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
SITES = {"north": slice(0, 750), "south": slice(750, 1500)}


def train_site(name):
    part = SITES[name]
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=DataLoader(TensorDataset(X[part], y[part]), batch_size=50),
        noise_multiplier=1.2, max_grad_norm=1.0)
    for _ in range(4):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    return model, engine.get_epsilon(1e-5)


if __name__ == "__main__":
    for site in SITES:
        model, eps = train_site(site)
        with torch.no_grad():
            acc = (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item()
        print(site, "acc", round(acc, 3), "eps", round(float(eps), 3))
