import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, default_collate
from opacus import PrivacyEngine

ALPHA = 1.0
rng = np.random.default_rng(7)
torch.manual_seed(7)


def mix_collate(samples):
    x, y = default_collate(samples)
    y = F.one_hot(y, 10).float()
    lam = float(rng.beta(ALPHA, ALPHA))
    mixed_x = lam * x + (1 - lam) * x.roll(1, dims=0)
    mixed_y = lam * y + (1 - lam) * y.roll(1, dims=0)
    return torch.cat([x, mixed_x]), torch.cat([y, mixed_y])


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.head = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.norm(self.conv2(x))), 2)
        return self.head(x.flatten(1))


digits = load_digits()
images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(digits.target)
perm = torch.randperm(len(images))
tr, te = perm[:1200], perm[1200:]
loader = DataLoader(TensorDataset(images[tr], labels[tr]), batch_size=48, collate_fn=mix_collate)

net = SmallCNN()
opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-4)
engine = PrivacyEngine()
net, opt, loader = engine.make_private(module=net, optimizer=opt, data_loader=loader,
                                       noise_multiplier=1.0, max_grad_norm=1.0)
for epoch in range(3):
    net.train()
    for xb, yb in loader:
        opt.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        opt.step()

net.eval()
with torch.no_grad():
    acc = (net(images[te]).argmax(1) == labels[te]).float().mean().item()
print(f"accuracy {acc:.3f}  epsilon {engine.get_epsilon(1e-5):.2f}")
torch.save({"state": net._module.state_dict(), "alpha": ALPHA}, "mixup_cnn.pt")
