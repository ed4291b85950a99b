import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

d = load_digits()
x, y = torch.tensor(d.images).float().unsqueeze(1) / 16, torch.tensor(d.target)
pub, priv, test = slice(0, 400), slice(400, 1520), slice(1520, None)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(288, 10)

    def forward(self, t):
        return self.head(self.body(t))


net = Net()
warm = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(15):
    warm.zero_grad()
    nn.functional.cross_entropy(net(x[pub]), y[pub]).backward()
    warm.step()

net.body.eval().requires_grad_(False)
with torch.no_grad():
    feats = net.body(x[priv])
head = net.head
opt = torch.optim.Adam(head.parameters(), lr=3e-3)
engine = PrivacyEngine()
dp_head, opt, loader = engine.make_private_with_epsilon(
    module=head, optimizer=opt, data_loader=DataLoader(TensorDataset(feats, y[priv]), batch_size=56),
    target_epsilon=3.0, target_delta=1e-5, epochs=3, max_grad_norm=1.0)
for _ in range(3):
    for f, t in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(dp_head(f), t).backward()
        opt.step()
with torch.no_grad():
    acc = (dp_head(net.body(x[test])).argmax(1) == y[test]).float().mean().item()
print(f"test acc {acc:.3f} eps {engine.get_epsilon(1e-5):.2f}")
torch.save({"body": net.body.state_dict(), "head": dp_head._module.state_dict()}, "transfer.pt")
