import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(77)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
perm = torch.randperm(len(X))
tr, te = perm[:1200], perm[1200:]
CLIP, MAX_EPOCHS = 2.0, 6


def saturated(optimizer):
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in optimizer.grad_samples]).norm(dim=0)
    return (norms > optimizer.max_grad_norm).float().mean().item()


model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    data_loader=DataLoader(TensorDataset(X[tr], y[tr]), batch_size=60),
    noise_multiplier=0.7, max_grad_norm=CLIP)

criterion = nn.CrossEntropyLoss()
running, done, steps = 1.0, False, 0
for epoch in range(MAX_EPOCHS):
    for xb, yb in loader:
        optimizer.zero_grad()
        criterion(model(xb), yb).backward()
        running = 0.8 * running + 0.2 * saturated(optimizer)
        optimizer.step()
        steps += 1
        if steps >= 40 and running < 0.45:
            done = True
            break
    if done:
        break

with torch.no_grad():
    acc = (model(X[te]).argmax(1) == y[te]).float().mean().item()
print(f"{steps} steps, accuracy {acc:.3f}, epsilon {engine.get_epsilon(1e-5):.2f}")
torch.save(model._module.state_dict(), "converged.pt")
