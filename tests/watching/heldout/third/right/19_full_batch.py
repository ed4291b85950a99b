import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float() / 16, torch.tensor(y)
ds = TensorDataset(X[:1400], y[:1400])
net = nn.Linear(64, 10)
opt = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.6)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=12.0, max_grad_norm=1.0,
                                   data_loader=DataLoader(ds, batch_size=len(ds)))
for step in range(50):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
    if step % 10 == 9:
        for g in opt.param_groups:
            g["lr"] *= 0.8
        with torch.no_grad():
            acc = (net(X[1400:]).argmax(1) == y[1400:]).float().mean().item()
        print(step + 1, f"{acc:.3f}", f"eps {engine.get_epsilon(1e-5):.2f}")
torch.save(net._module.state_dict(), "gd.pt")
