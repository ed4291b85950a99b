import copy
import torch
from torch import nn
from sklearn.datasets import load_breast_cancer
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

UNIT = torch.tensor([14, 19, 92, 650, .1, .1, .09, .05, .18, .06, .4, 1.2, 2.9, 40, .007, .025, .03, .012, .02, .004,
                     16, 26, 107, 880, .13, .25, .27, .11, .29, .08])
bc = load_breast_cancer()
X = torch.tensor(bc.data, dtype=torch.float32) / UNIT - 1.0
Y = torch.tensor(bc.target)
net = nn.Sequential(nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 2))
ema = copy.deepcopy(net)
swa, n_swa = None, 0
opt = torch.optim.SGD(net.parameters(), lr=0.2)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.5, max_grad_norm=1.0,
                                   data_loader=DataLoader(TensorDataset(X[:460], Y[:460]), batch_size=46))
step = 0
for epoch in range(7):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
        step += 1
        w = min(0.95, step / (step + 10))
        with torch.no_grad():
            for e, p in zip(ema.parameters(), net.parameters()):
                e.lerp_(p, 1 - w)
    if epoch >= 4:
        cur = [p.detach().clone() for p in net.parameters()]
        n_swa += 1
        swa = cur if swa is None else [a + (b - a) / n_swa for a, b in zip(swa, cur)]
with torch.no_grad():
    print("ema acc", (ema(X[460:]).argmax(1) == Y[460:]).float().mean().item(), "eps", engine.get_epsilon(1e-4))
torch.save({"last": net._module.state_dict(), "ema": ema.state_dict(), "swa": swa}, "avg.pt")
