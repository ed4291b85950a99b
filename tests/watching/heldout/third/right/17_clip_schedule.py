import math
import torch
from torch import nn
from sklearn.datasets import load_wine
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.schedulers import LambdaGradClip

raw, lab = load_wine(return_X_y=True)
MID = torch.tensor([13, 2.3, 2.4, 19, 100, 2.3, 2, .36, 1.6, 5, .95, 2.6, 750])
WID = torch.tensor([.8, 1.1, .3, 3.3, 14, .6, 1, .12, .6, 2.3, .23, .7, 310])
x = (torch.tensor(raw, dtype=torch.float32) - MID) / WID
y = torch.tensor(lab)
perm = torch.randperm(len(x))
x, y = x[perm], y[perm]
net = nn.Sequential(nn.Linear(13, 12), nn.Tanh(), nn.Linear(12, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.7)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=2.0, max_grad_norm=1.5,
                                   data_loader=DataLoader(TensorDataset(x[:136], y[:136]), batch_size=34))
EPOCHS = 14
clip = LambdaGradClip(opt, scheduler_function=lambda e: 0.3 + 0.7 * 0.5 * (1 + math.cos(math.pi * e / EPOCHS)))
for epoch in range(EPOCHS):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
    clip.step()
with torch.no_grad():
    print("acc", (net(x[136:]).argmax(1) == y[136:]).float().mean().item())
print("clip", opt.max_grad_norm, "eps", engine.get_epsilon(1e-3))
torch.save(net.state_dict(), "wine_dp.pt")
