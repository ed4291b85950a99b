import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

CHUNK = 32


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.fc = nn.Linear(8 * 16, 10)

    def forward(self, x):
        return self.fc(F.relu(self.c2(F.relu(self.c1(x)))).flatten(1))


def logical_step(model, optimizer, xb, yb):
    parts = list(zip(xb.split(CHUNK), yb.split(CHUNK)))
    for i, (x, y) in enumerate(parts):
        optimizer.signal_skip_step(do_skip=i + 1 < len(parts))
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    torch.manual_seed(16)
    d = load_digits()
    x = torch.tensor(d.images / 16, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(d.target)
    perm = torch.randperm(len(x))
    tr, te = perm[:1200], perm[1200:]
    model = Net()
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.7),
        data_loader=DataLoader(TensorDataset(x[tr], y[tr]), batch_size=100),
        noise_multiplier=1.1, max_grad_norm=1.0)
    for epoch in range(4):
        for xb, yb in loader:
            logical_step(model, optimizer, xb, yb)
    model.eval()
    with torch.no_grad():
        acc = (model(x[te]).argmax(1) == y[te]).float().mean().item()
    print("acc", acc, "eps", engine.get_epsilon(1e-5))
    torch.save(model._module.state_dict(), "chunks.pt")


main()
