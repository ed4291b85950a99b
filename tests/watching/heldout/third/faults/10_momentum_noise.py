import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed

LAM = 0.9


class TreeNoise:
    def __init__(self, optimizer: DPOptimizer):
        self.o = optimizer
        self.last = {}

    def __call__(self):
        o = self.o
        std = o.noise_multiplier * o.max_grad_norm
        for p in o.params:
            z = _generate_noise(std=std, reference=p.summed_grad, generator=o.generator)
            prev = self.last.get(p)
            p.grad = p.summed_grad + (z if prev is None else z - LAM * prev)
            self.last[p] = z
            _mark_as_processed(p.summed_grad)


X, y = make_classification(1800, 30, n_informative=12, n_classes=3, random_state=7)
X, y = torch.tensor(X).float(), torch.tensor(y)
model = nn.Sequential(nn.Linear(30, 40), nn.ELU(), nn.Linear(40, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.2)
engine = PrivacyEngine()
model, opt, dl = engine.make_private_with_epsilon(
    module=model, optimizer=opt, data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=75),
    epochs=4, target_epsilon=2.0, target_delta=1e-5, max_grad_norm=1.0)
opt.add_noise = TreeNoise(opt)
for epoch in range(4):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()
acc = (model(X[1500:]).argmax(1) == y[1500:]).float().mean()
print(f"acc {acc:.3f} | eps {engine.get_epsilon(1e-5):.3f}")
