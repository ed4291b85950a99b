import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float() / 16, torch.tensor(y)
TRAIN = TensorDataset(X[:1350], y[:1350])


def setup(lr):
    model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(module=model, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
                                             data_loader=DataLoader(TRAIN, batch_size=54))
    return engine, model, opt, loader


def fit(model, opt, loader, epochs):
    for _ in range(epochs):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()


engine, model, opt, loader = setup(5e-3)
fit(model, opt, loader, 2)
engine.save_checkpoint(path="session1.pt", module=model, optimizer=opt, checkpoint_dict={"epoch": 2})
print("first", engine.get_epsilon(1e-5))
del engine, model, opt, loader

engine, model, opt, loader = setup(5e-3)
info = engine.load_checkpoint(path="session1.pt", module=model, optimizer=opt)
fit(model, opt, loader, 4 - info["epoch"])
with torch.no_grad():
    print("acc", (model(X[1350:]).argmax(1) == y[1350:]).float().mean().item())
print("total", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "resumed.pt")
