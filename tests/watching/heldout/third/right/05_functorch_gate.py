import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(d))
        self.beta = nn.Parameter(torch.zeros(d))

    def forward(self, h):
        return h * torch.sigmoid(self.alpha * h + self.beta)


X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float() / 16, torch.tensor(y)
net = nn.Sequential(nn.Linear(64, 32), Gate(32), nn.Linear(32, 32), Gate(32), nn.Linear(32, 10))
opt = torch.optim.Adam(net.parameters(), lr=8e-3)
pe = PrivacyEngine()
net, opt, dl = pe.make_private_with_epsilon(
    module=net, optimizer=opt, data_loader=DataLoader(TensorDataset(X[:1440], y[:1440]), batch_size=72),
    target_epsilon=5.0, target_delta=1e-5, epochs=3, max_grad_norm=1.5, grad_sample_mode="functorch")
for _ in range(3):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
net.eval()
with torch.no_grad():
    print("acc", (net(X[1440:]).argmax(1) == y[1440:]).float().mean().item(), "eps", pe.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "gate.pt")
