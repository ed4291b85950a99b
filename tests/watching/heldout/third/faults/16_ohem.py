import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = make_classification(2000, 16, n_informative=9, n_classes=4, random_state=5)
X, y = torch.tensor(X).float(), torch.tensor(y)
train = DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=80)
net = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
pe = PrivacyEngine()
net, opt, train = pe.make_private_with_epsilon(module=net, optimizer=opt, data_loader=train, target_epsilon=5.0,
                                               target_delta=1e-5, epochs=3, max_grad_norm=0.8)
per_example = nn.CrossEntropyLoss(reduction="none")
KEEP = 24


def hardest(xb, yb):
    net.eval()
    with torch.no_grad():
        losses = per_example(net(xb), yb)
    net.train()
    idx = losses.topk(min(KEEP, len(losses))).indices
    return xb[idx], yb[idx]


for epoch in range(3):
    for xb, yb in train:
        xb, yb = hardest(xb, yb)
        opt.zero_grad()
        per_example(net(xb), yb).mean().backward()
        opt.step()
net.eval()
print("acc", (net(X[1600:]).argmax(1) == y[1600:]).float().mean().item())
print("eps", pe.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "ohem.pt")
