import torch
from torch import nn
from torch.optim import Optimizer
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class Lion(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            b1, b2 = g["betas"]
            for p in g["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - g["lr"] * g["weight_decay"])
                p.add_((b1 * m + (1 - b1) * p.grad).sign(), alpha=-g["lr"])
                m.lerp_(p.grad, 1 - b2)


X, y = make_classification(2000, 24, n_informative=14, n_classes=4, random_state=12)
X, y = torch.tensor(X).float(), torch.tensor(y)
net = nn.Sequential(nn.Linear(24, 50), nn.Mish(), nn.Linear(50, 4))
opt = Lion([{"params": net[0].parameters(), "lr": 3e-3}, {"params": net[2].parameters(), "lr": 6e-3}], weight_decay=0.1)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.0, max_grad_norm=0.7,
                                   data_loader=DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=80))
for _ in range(4):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
with torch.no_grad():
    print("acc", (net(X[1600:]).argmax(1) == y[1600:]).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save({"model": net._module.state_dict(), "optim": opt.state_dict()}, "lion.pt")
