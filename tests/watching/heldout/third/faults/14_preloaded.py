import time
import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build():
    X, y = make_classification(n_samples=2200, n_features=24, n_informative=10, random_state=11)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    return TensorDataset(X[:2000], y[:2000]), (X[2000:], y[2000:])


train, (xt, yt) = build()
model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
engine = PrivacyEngine()
model, opt, loader = engine.make_private(module=model, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
                                         data_loader=DataLoader(train, batch_size=100))

on_device = [(a.to(device), b.to(device)) for a, b in loader]
t0 = time.time()
for epoch in range(4):
    for i in torch.randperm(len(on_device)).tolist():
        xb, yb = on_device[i]
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()
print(f"{time.time() - t0:.1f}s")
model.eval()
with torch.no_grad():
    acc = (model(xt.to(device)).argmax(1).cpu() == yt).float().mean()
print(f"acc {acc:.3f} eps {engine.get_epsilon(1e-5):.2f}")
torch.save(model._module.state_dict(), "adamw.pt")
