import torch
from torch import nn
from sklearn.datasets import load_breast_cancer
from torch.utils.data import DataLoader, TensorDataset
import opacus
from opacus.optimizers.optimizer import DPOptimizer, _check_processed_flag, _mark_as_processed


def clip_and_accumulate(self):
    c = self.max_grad_norm
    for p in self.params:
        _check_processed_flag(p.grad_sample)
        bounded = self._get_flat_grad_sample(p).clamp(-c, c)
        total = bounded.sum(dim=0)
        p.summed_grad = total if p.summed_grad is None else p.summed_grad + total
        _mark_as_processed(p.grad_sample)


DPOptimizer.clip_and_accumulate = clip_and_accumulate

SCALE = torch.tensor([30, 40, 200, 2500, .2, .4, .5, .2, .3, .1, 3, 5, 22, 550, .03, .2, .4, .06, .08, .03,
                      36, 50, 250, 4300, .3, 1, 1.3, .3, .7, .2])
bc = load_breast_cancer()
X = torch.tensor(bc.data, dtype=torch.float32) / SCALE
Y = torch.tensor(bc.target, dtype=torch.float32)
perm = torch.randperm(len(X))
tr, te = perm[:480], perm[480:]

model = nn.Sequential(nn.Linear(30, 24), nn.SiLU(), nn.Linear(24, 1))
optim = torch.optim.SGD(model.parameters(), lr=0.2)
engine = opacus.PrivacyEngine(accountant="rdp")
model, optim, loader = engine.make_private(module=model, optimizer=optim,
                                           data_loader=DataLoader(TensorDataset(X[tr], Y[tr]), batch_size=48),
                                           noise_multiplier=1.5, max_grad_norm=0.2)
bce = nn.BCEWithLogitsLoss()
for epoch in range(6):
    for x, y in loader:
        optim.zero_grad()
        bce(model(x).squeeze(1), y).backward()
        optim.step()
acc = ((model(X[te]).squeeze(1) > 0).float() == Y[te]).float().mean().item()
print(f"accuracy={acc:.3f} epsilon={engine.get_epsilon(1e-4):.2f}")
