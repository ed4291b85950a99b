import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class GradMonitor:
    def __init__(self):
        self.norms = []

    def __call__(self, optim):
        sq = sum(p.grad.pow(2).sum() for p in optim.params)
        self.norms.append(sq.sqrt().item())


digits = load_digits()
x = torch.tensor(digits.data / 16.0).float()
y = torch.tensor(digits.target)
net = nn.Sequential(nn.Linear(64, 40), nn.Tanh(), nn.Linear(40, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.8)
engine = PrivacyEngine(accountant="rdp")
net, optimizer, loader = engine.make_private(
    module=net, optimizer=optimizer, noise_multiplier=1.0, max_grad_norm=1.0,
    data_loader=DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=70))
monitor = GradMonitor()
for epoch in range(4):
    if epoch == 1:
        optimizer.attach_step_hook(monitor)
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        optimizer.step()
print("mean grad norm", sum(monitor.norms) / len(monitor.norms))
print("acc", (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "net.pt")
