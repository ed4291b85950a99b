import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise

BETA = 0.85


class CorrelatedNoiseOptimizer(DPOptimizer):
    """Takes back part of the perturbation of the previous step."""

    def add_noise(self):
        if not hasattr(self, "carry"):
            self.carry = [torch.zeros_like(p) for p in self.params]
        std = self.noise_multiplier * self.max_grad_norm
        for i, p in enumerate(self.params):
            z = _generate_noise(std=std, reference=p.summed_grad, generator=self.generator)
            p.grad = (p.summed_grad + z - BETA * self.carry[i]).view_as(p)
            self.carry[i] = z


def wrap(dp_opt):
    new = CorrelatedNoiseOptimizer(
        dp_opt.original_optimizer, noise_multiplier=dp_opt.noise_multiplier,
        max_grad_norm=dp_opt.max_grad_norm, expected_batch_size=dp_opt.expected_batch_size)
    new.attach_step_hook(dp_opt.step_hook)
    return new


torch.manual_seed(9)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16, dtype=torch.float32)
y = torch.tensor(y)
perm = torch.randperm(len(X))
X, y = X[perm], y[perm]

model = nn.Sequential(nn.Linear(64, 64), nn.ELU(), nn.Linear(64, 10))
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
    data_loader=DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=70),
    noise_multiplier=1.5, max_grad_norm=1.0)
optimizer = wrap(optimizer)

loss_fn = nn.CrossEntropyLoss()
for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss_fn(model(xb), yb).backward()
        optimizer.step()
    with torch.no_grad():
        acc = (model(X[1400:]).argmax(1) == y[1400:]).float().mean().item()
    print(epoch, f"acc={acc:.3f}", f"eps={engine.get_epsilon(1e-5):.2f}")
torch.save(model.state_dict(), "correlated.pt")
