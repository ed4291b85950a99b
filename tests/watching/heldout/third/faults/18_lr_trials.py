import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = make_classification(1900, 20, n_informative=10, n_classes=3, random_state=2)
X, y = torch.tensor(X).float(), torch.tensor(y)
xpub, ypub = X[1600:], y[1600:]
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, noise_multiplier=0.9, max_grad_norm=1.0,
    data_loader=DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=80))


def one_epoch():
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()


def score():
    model.eval()
    with torch.no_grad():
        return (model(xpub).argmax(1) == ypub).float().mean().item()


one_epoch()
engine.save_checkpoint(path="warm.pt", module=model, optimizer=optimizer)
results = {}
for lr in (0.1, 0.3, 1.0):
    engine.load_checkpoint(path="warm.pt", module=model, optimizer=optimizer)
    for g in optimizer.param_groups:
        g["lr"] = lr
    one_epoch()
    results[lr] = score()
    engine.save_checkpoint(path=f"lr_{lr}.pt", module=model, optimizer=optimizer)
best = max(results, key=results.get)
engine.load_checkpoint(path=f"lr_{best}.pt", module=model, optimizer=optimizer)
print(results, "best", best, "eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "best.pt")
