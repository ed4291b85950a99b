import torch
from torch import nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class RunningScale(nn.Module):
    def __init__(self, dim, beta=0.9):
        super().__init__()
        self.beta = beta
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("sq", torch.ones(dim))

    def forward(self, x):
        if self.training and len(x) > 0:
            with torch.no_grad():
                self.mean.mul_(self.beta).add_(x.mean(0), alpha=1 - self.beta)
                self.sq.mul_(self.beta).add_((x * x).mean(0), alpha=1 - self.beta)
        var = (self.sq - self.mean ** 2).clamp(min=1e-4)
        return (x - self.mean) / var.sqrt()


X, y = load_breast_cancer(return_X_y=True)
xtr, xte, ytr, yte = train_test_split(X, y, test_size=100, random_state=0, stratify=y)
as_f = lambda a: torch.tensor(a, dtype=torch.float32)
train = TensorDataset(as_f(xtr), torch.tensor(ytr))

model = nn.Sequential(RunningScale(30), nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=DataLoader(train, batch_size=40),
    noise_multiplier=1.2, max_grad_norm=1.0)
for epoch in range(5):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    acc = (model(as_f(xte)).argmax(1) == torch.tensor(yte)).float().mean().item()
print(f"test acc {acc:.3f}, eps {engine.get_epsilon(1e-4):.2f}")
torch.save(model._module.state_dict(), "bc.pt")
