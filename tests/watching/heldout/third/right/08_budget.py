import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.accountants import RDPAccountant

BUDGET, DELTA = 1.6, 1e-5
X, y = make_classification(2400, 20, n_informative=12, random_state=6)
X, y = torch.tensor(X).float(), torch.tensor(y)
net = nn.Sequential(nn.Linear(20, 24), nn.Tanh(), nn.Linear(24, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.5)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.1, max_grad_norm=1.0,
                                   data_loader=DataLoader(TensorDataset(X[:2000], y[:2000]), batch_size=80))


def affordable():
    probe = RDPAccountant()
    probe.history = list(engine.accountant.history)
    probe.step(noise_multiplier=opt.noise_multiplier, sample_rate=dl.sample_rate)
    return probe.get_epsilon(DELTA) <= BUDGET


done, steps = False, 0
while not done:
    for xb, yb in dl:
        if steps >= 90 or not affordable():
            done = True
            break
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
        steps += 1
print("steps", steps, "eps", engine.get_epsilon(DELTA))
print("acc", (net(X[2000:]).argmax(1) == y[2000:]).float().mean().item())
torch.save(net.state_dict(), "budget.pt")
