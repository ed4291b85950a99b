import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

# total clip norm 1.0, split equally (in squares) over the tensors
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
n_tensors = len(list(model.parameters()))
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
    data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
    noise_multiplier=1.0,
    max_grad_norm=[1.0 / n_tensors ** 0.5] * n_tensors,
    clipping="per_layer",
)
for _ in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
