import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine
from opacus.utils.uniform_sampler import UniformWithReplacementSampler

torch.manual_seed(36)
RATE = 1 / 20
X, y = make_classification(1600, 14, n_informative=7, random_state=9)
X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
train = TensorDataset(X[:1200], y[:1200])

sampler = UniformWithReplacementSampler(num_samples=len(train), sample_rate=RATE)
loader = DataLoader(train, batch_sampler=sampler)

model = nn.Sequential(nn.Linear(14, 28), nn.Softplus(), nn.Linear(28, 2))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader,
    noise_multiplier=1.0, max_grad_norm=1.0, poisson_sampling=False)
model.forbid_grad_accumulation()

for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()

with torch.no_grad():
    acc = (model(X[1200:]).argmax(1) == y[1200:]).float().mean().item()
print("acc", acc)
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "own_sampler.pt")
