import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float() / 16, torch.tensor(y)
ds = TensorDataset(X[:1440], y[:1440])
net = nn.Sequential(nn.Linear(64, 50), nn.GELU(), nn.Linear(50, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.5)
engine = PrivacyEngine(accountant="rdp")
net, opt, loader = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.2, max_grad_norm=1.0,
                                       data_loader=DataLoader(ds, batch_size=48))
for bs in (48, 96, 144):
    if bs != 48:
        loader = DPDataLoader.from_data_loader(DataLoader(ds, batch_size=bs))
        opt.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=loader.sample_rate))
        opt.expected_batch_size = bs
    for _ in range(2 if bs == 144 else 1):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(net(xb), yb).backward()
            opt.step()
    print(bs, engine.accountant.history[-1], engine.get_epsilon(1e-5))
with torch.no_grad():
    print("acc", (net(X[1440:]).argmax(1) == y[1440:]).float().mean().item())
torch.save(net._module.state_dict(), "growing.pt")
