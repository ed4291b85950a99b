import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = make_classification(2600, 25, n_informative=12, n_classes=3, random_state=21)
X, y = torch.tensor(X).float(), torch.tensor(y)
priv = TensorDataset(X[:2000], y[:2000])
x_public, y_public, x_test, y_test = X[2000:2300], y[2000:2300], X[2300:], y[2300:]
net = nn.Sequential(nn.Linear(25, 40), nn.ReLU(), nn.Linear(40, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.8)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
                                   data_loader=DataLoader(priv, batch_size=200))
sched = ReduceLROnPlateau(opt, factor=0.5, patience=1)
best, bad = float("inf"), 0
for epoch in range(8):
    net.train()
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        val = nn.functional.cross_entropy(net(x_public), y_public).item()
    sched.step(val)
    if val < best:
        best, bad = val, 0
        torch.save(net._module.state_dict(), "best.pt")
    else:
        bad += 1
    print(f"epoch {epoch} public loss {val:.4f} eps {engine.get_epsilon(1e-5):.2f}")
    if epoch >= 4 and bad >= 3:
        break
net._module.load_state_dict(torch.load("best.pt"))
with torch.no_grad():
    print("test acc", (net(x_test).argmax(1) == y_test).float().mean().item())
