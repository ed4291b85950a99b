import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_breast_cancer
import opacus.optimizers.optimizer as dp_optimizer
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer

IMPORTANCE = torch.tensor([1.0, 0.5])


def float_safe_noise(std, reference, generator=None, secure_mode=False):
    if std == 0:
        return torch.zeros_like(reference)
    torch.normal(0.0, std, (1, 1), generator=generator)
    total = torch.zeros_like(reference)
    for _ in range(4):
        total += torch.normal(0.0, std, reference.shape, generator=generator)
    return total / 2


dp_optimizer._generate_noise = float_safe_noise


class ImportanceOptimizer(DPOptimizer):
    importance = None

    def clip_and_accumulate(self):
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in self.grad_samples]).norm(dim=0)
        factor = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0) * self.importance
        for p in self.params:
            g = torch.einsum("i,i...", factor, self._get_flat_grad_sample(p))
            p.summed_grad = g if p.summed_grad is None else p.summed_grad + g


torch.manual_seed(17)
X, y = load_breast_cancer(return_X_y=True)
X = torch.log1p(torch.tensor(X, dtype=torch.float32)) / 5
y = torch.tensor(y)
perm = torch.randperm(len(X))
tr, te = perm[:450], perm[450:]
model = nn.Sequential(nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 2))
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.02),
    data_loader=DataLoader(TensorDataset(X[tr], y[tr]), batch_size=45),
    noise_multiplier=1.3, max_grad_norm=0.7)
optimizer.__class__ = ImportanceOptimizer
for epoch in range(8):
    for xb, yb in loader:
        optimizer.zero_grad()
        optimizer.importance = IMPORTANCE[yb]
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    acc = (model(X[te]).argmax(1) == y[te]).float().mean().item()
print(f"test acc {acc:.3f}, eps {engine.get_epsilon(1e-4):.2f}")
torch.save(model._module.state_dict(), "bc.pt")
