import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine

torch.manual_seed(8)


class Claims(Dataset):
    def __init__(self, n, seed):
        X, y = make_classification(n_samples=n, n_features=12, n_informative=6,
                                   weights=[0.8], random_state=seed)
        self.x = torch.tensor(X / 3, dtype=torch.float32)
        self.y = torch.tensor(y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


full = Claims(1400, 6)
positives = [i for i in range(1000) if full.y[i] == 1]
indices = list(range(1000)) + positives * 3
train = Subset(full, indices)
test_x, test_y = full.x[1000:], full.y[1000:]

model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.8)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(train, batch_size=64),
    noise_multiplier=1.2, max_grad_norm=1.0)

for epoch in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()

with torch.no_grad():
    pred = model(test_x).argmax(1)
for c in (0, 1):
    print("class", c, "recall", (pred[test_y == c] == c).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "claims.pt")
