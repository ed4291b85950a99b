import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = make_classification(2000, 22, n_informative=10, n_classes=3, random_state=8)
X, y = torch.tensor(X).float(), torch.tensor(y)
net = nn.Sequential(nn.Linear(22, 40), nn.LayerNorm(40), nn.ReLU(), nn.Linear(40, 3))
opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
C = 1.0
share = {"0.weight": 0.5, "0.bias": 0.1, "1.weight": 0.1, "1.bias": 0.1, "3.weight": 0.15, "3.bias": 0.05}
bounds = [C * share[n] ** 0.5 for n, _ in net.named_parameters()]
pe = PrivacyEngine(accountant="rdp")
net, opt, dl = pe.make_private(module=net, optimizer=opt, noise_multiplier=1.0, max_grad_norm=bounds,
                               clipping="per_layer",
                               data_loader=DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=80))
for _ in range(3):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
net.eval()
print("acc", (net(X[1600:]).argmax(1) == y[1600:]).float().mean().item(), "eps", pe.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "pl.pt")
