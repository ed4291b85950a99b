import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x).float() / 16, torch.tensor(y)
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.3)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=0.9, max_grad_norm=1.0,
                                   data_loader=DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=70))
norms, lrs = [], []
for epoch in range(3):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
        norms.append(torch.cat([p.grad.flatten() for p in opt.params]).norm().item())
        recent = sum(norms[-5:]) / len(norms[-5:])
        lr = min(0.8, 0.3 * max(norms[0] / recent, 0.2))
        for g in opt.param_groups:
            g["lr"] = lr
        lrs.append(lr)
    if epoch > 0 and recent > 3 * norms[0]:
        break
print("lr", lrs[0], "->", lrs[-1], "grad norm", norms[-1])
with torch.no_grad():
    print("acc", (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save({"w": net._module.state_dict(), "lrs": lrs, "norms": norms}, "trace.pt")
