import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = make_classification(2000, 20, n_informative=10, class_sep=1.2, random_state=14)
X, y = torch.tensor(X).float(), torch.tensor(y).float()
group = (X[:, 0] > 2.8).float()
train = TensorDataset(X[:1600], y[:1600], group[:1600])
xt, yt, gt = X[1600:], y[1600:], group[1600:]


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(20, 24)
        self.l2 = nn.Linear(24, 1)

    def forward(self, x):
        return self.l2(torch.relu(self.l1(x))).squeeze(1)


def parity_gap(score, g):
    p = torch.sigmoid(score)
    a = (p * g).sum() / g.sum().clamp(min=1)
    b = (p * (1 - g)).sum() / (1 - g).sum().clamp(min=1)
    return (a - b) ** 2


LAMBDA = 8.0
net = Scorer()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
engine = PrivacyEngine(accountant="rdp")
net, opt, loader = engine.make_private(
    module=net, optimizer=opt, data_loader=DataLoader(train, batch_size=64),
    noise_multiplier=0.8, max_grad_norm=1.0)
for epoch in range(3):
    for x, t, g in loader:
        opt.zero_grad()
        s = net(x)
        loss = F.binary_cross_entropy_with_logits(s, t) + LAMBDA * parity_gap(s, g)
        loss.backward()
        opt.step()
with torch.no_grad():
    s = net(xt)
    acc = ((s > 0).float() == yt).float().mean().item()
    print(f"acc {acc:.3f} gap {parity_gap(s, gt).sqrt().item():.3f} eps {engine.get_epsilon(1e-5):.2f}")
torch.save(net._module.state_dict(), "scorer.pt")
