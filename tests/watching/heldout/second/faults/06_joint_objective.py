import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset, DataLoader
from opacus import PrivacyEngine

torch.manual_seed(21)
data = load_digits()
X = torch.from_numpy(data.data).float() / 16
y = torch.from_numpy(data.target).long()
idx = torch.randperm(len(X))
train_set = TensorDataset(X[idx[:1000]], y[idx[:1000]])
Xte, yte = X[idx[1000:]], y[idx[1000:]]


class ClassifyAndReconstruct(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.enc = nn.Linear(64, hidden)
        self.out = nn.Linear(hidden, 10 + 64)

    def forward(self, x):
        out = self.out(torch.tanh(self.enc(x)))
        return out[:, :10], out[:, 10:]


model = ClassifyAndReconstruct()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, train_loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(train_set, batch_size=50),
    noise_multiplier=1.2,
    max_grad_norm=0.6,
)

for epoch in range(4):
    for xb, yb in train_loader:
        optimizer.zero_grad()

        optimizer.signal_skip_step(True)
        logits, _ = model(xb)
        F.cross_entropy(logits, yb).backward()
        optimizer.step()
        optimizer.zero_grad()

        optimizer.signal_skip_step(False)
        _, recon = model(xb)
        (4.0 * F.mse_loss(recon, xb)).backward()
        optimizer.step()
        optimizer.zero_grad()

model.eval()
with torch.no_grad():
    logits, recon = model(Xte)
print("test acc", (logits.argmax(1) == yte).float().mean().item())
print("test mse", F.mse_loss(recon, Xte).item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "joint.pt")
