import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine


class SignMomentum(Optimizer):
    """Signed momentum whose step size shrinks when the gradient norm grows."""

    def __init__(self, params, lr=0.01, beta=0.8):
        super().__init__(params, {"lr": lr, "beta": beta})
        self.running = None

    @torch.no_grad()
    def step(self, closure=None):
        total = sum(p.grad.pow(2).sum() for g in self.param_groups for p in g["params"]).sqrt().item()
        self.running = total if self.running is None else 0.9 * self.running + 0.1 * total
        shrink = min(1.0, self.running / (total + 1e-12))
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                p.add_(m.sign(), alpha=-group["lr"] * shrink)


torch.manual_seed(18)
X, y = make_classification(1500, 20, n_informative=10, n_classes=3, random_state=1)
X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = SignMomentum(model.parameters(), lr=0.01)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:1100], y[:1100]), batch_size=55),
    noise_multiplier=0.8, max_grad_norm=1.0)
norms = []
for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
        norms.append(sum(p.grad.pow(2).sum() for p in model.parameters()).sqrt().item())
with torch.no_grad():
    acc = (model(X[1100:]).argmax(1) == y[1100:]).float().mean().item()
print("noisy gradient norm, first and last", norms[0], norms[-1])
print("acc", acc, "eps", engine.get_epsilon(1e-5))
torch.save({"net": model._module.state_dict(), "noisy_norms": norms}, "sign.pt")
