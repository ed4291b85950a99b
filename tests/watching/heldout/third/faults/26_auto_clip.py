import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


def sample_norms(optimizer):
    return torch.stack([g.flatten(1).norm(dim=1) for g in optimizer.grad_samples], dim=1).norm(dim=1)


X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16.0, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 56), nn.ReLU(), nn.Linear(56, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, noise_multiplier=1.1, max_grad_norm=1.0,
    data_loader=DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=70))
history = []
for epoch in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.max_grad_norm = sample_norms(optimizer).median().item()
        history.append(optimizer.max_grad_norm)
        optimizer.step()
print("clip norm", history[0], "->", history[-1])
print("acc", (model(X[1400:]).argmax(1) == y[1400:]).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "auto.pt")
