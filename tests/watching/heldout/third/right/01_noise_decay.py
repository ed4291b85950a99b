import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialNoise

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float() / 16, torch.tensor(y)
net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.5)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.6, max_grad_norm=1.0,
                                   data_loader=DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=70))
decay = ExponentialNoise(opt, gamma=0.85)
for epoch in range(4):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
    decay.step()
    print(epoch, f"sigma {opt.noise_multiplier:.3f} eps {engine.get_epsilon(1e-5):.2f}")
with torch.no_grad():
    print("held-out", (net(X[1400:]).argmax(1) == y[1400:]).float().mean().item())
torch.save(net._module.state_dict(), "decay.pt")
