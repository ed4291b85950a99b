import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(13)
BATCH = 64
MAX_ROWS = 66

X, y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32) / 16.0
y = torch.tensor(y)
order = torch.randperm(len(X))
X, y = X[order], y[order]
train, (Xt, yt) = TensorDataset(X[:1280], y[:1280]), (X[1280:], y[1280:])

buf_x = torch.zeros(MAX_ROWS, 64)
buf_y = torch.zeros(MAX_ROWS, dtype=torch.long)


def stage(xb, yb):
    n = min(len(xb), MAX_ROWS)
    buf_x[:n].copy_(xb[:n])
    buf_y[:n].copy_(yb[:n])
    return buf_x[:n].clone(), buf_y[:n].clone()


model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.7)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=DataLoader(train, batch_size=BATCH),
    noise_multiplier=1.0, max_grad_norm=1.0)

criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    for batch in loader:
        xb, yb = stage(*batch)
        optimizer.zero_grad()
        criterion(model(xb), yb).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, (model(Xt).argmax(1) == yt).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "staged.pt")
