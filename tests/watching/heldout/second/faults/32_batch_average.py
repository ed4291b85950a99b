import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class TinyAttention(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.embed = nn.Linear(8, d)
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        self.out = nn.Linear(d, 10)

    def forward(self, rows):
        h = self.embed(rows)
        att = (self.q(h) @ self.k(h).transpose(1, 2) / h.shape[-1] ** 0.5).softmax(-1)
        return self.out((h + att @ self.v(h)).mean(1))


torch.manual_seed(14)
data = load_digits()
images = torch.tensor(data.images / 16, dtype=torch.float32)
labels = torch.tensor(data.target)
perm = torch.randperm(len(images))
tr, te = perm[:1200], perm[1200:]

model = TinyAttention()
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
    data_loader=DataLoader(TensorDataset(images[tr], labels[tr]), batch_size=24),
    noise_multiplier=0.8, max_grad_norm=1.0)

criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        optimizer.expected_batch_size = max(1, len(xb))
        criterion(model(xb), yb).backward()
        optimizer.step()

with torch.no_grad():
    acc = (model(images[te]).argmax(1) == labels[te]).float().mean().item()
print("acc", acc, "eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "attention.pt")
