import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.layers import DPLSTM


class RowLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = DPLSTM(8, 24, batch_first=True)
        self.fc = nn.Linear(24, 10)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.fc(out[:, -1])


d = load_digits()
x, y = torch.tensor(d.images).float() / 8 - 1, torch.tensor(d.target)
net = RowLSTM()
with torch.no_grad():
    net.fc.bias.fill_(-2.0)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=0.8, max_grad_norm=1.0,
                                   data_loader=DataLoader(TensorDataset(x[:1440], y[:1440]), batch_size=72))
for _ in range(2):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
net.eval()
with torch.no_grad():
    print("acc", (net(x[1440:]).argmax(1) == y[1440:]).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "lstm.pt")
