import types
import torch
from torch import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers.optimizer import _mark_as_processed

d = load_digits()
xtr, xte, ytr, yte = train_test_split(
    torch.tensor(d.data / 16.0, dtype=torch.float32), torch.tensor(d.target), test_size=0.2, random_state=3)

model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(),
                      nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
pe = PrivacyEngine(accountant="rdp")
model, optimizer, loader = pe.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(xtr, ytr), batch_size=64, shuffle=True),
    noise_multiplier=1.1, max_grad_norm=0.1)


def clip_layerwise(self):
    for p in self.params:
        gs = self._get_flat_grad_sample(p)
        norms = gs.reshape(len(gs), -1).norm(2, dim=1)
        factor = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        g = torch.einsum("i,i...", factor, gs)
        p.summed_grad = g if p.summed_grad is None else p.summed_grad + g
        _mark_as_processed(p.grad_sample)


optimizer.clip_and_accumulate = types.MethodType(clip_layerwise, optimizer)

crit = nn.CrossEntropyLoss()
for ep in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        crit(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(xte).argmax(1) == yte).float().mean().item()
    print(f"epoch {ep} acc {acc:.3f} eps {pe.get_epsilon(1e-5):.2f}")
torch.save(model.state_dict(), "model.pt")
