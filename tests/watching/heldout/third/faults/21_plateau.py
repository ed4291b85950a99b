import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = make_classification(2000, 25, n_informative=10, random_state=9)
X, y = torch.tensor(X).float(), torch.tensor(y)
net = nn.Sequential(nn.Linear(25, 30), nn.ReLU(), nn.Linear(30, 2))
opt = torch.optim.SGD(net.parameters(), lr=1.0)
engine = PrivacyEngine(accountant="rdp")
net, opt, loader = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
                                       data_loader=DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=160))
sched = ReduceLROnPlateau(opt, factor=0.5, patience=0, threshold=0.05)
for epoch in range(7):
    total, n = 0.0, 0
    for xb, yb in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item() * len(xb)
        n += len(xb)
    sched.step(total / n)
    print(f"epoch {epoch} lr {opt.param_groups[0]['lr']:.3f}")
print("acc", (net(X[1600:]).argmax(1) == y[1600:]).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save(net.state_dict(), "plateau.pt")
