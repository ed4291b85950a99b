import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class PixelTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(17, 4)

    def forward(self, t):
        return self.table(t).flatten(1)


x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x).long(), torch.tensor(y)
encoder = PixelTable()
head = nn.Sequential(nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 10))
enc_opt = torch.optim.Adam(encoder.parameters(), lr=5e-3)
opt = torch.optim.Adam(head.parameters(), lr=5e-3)
engine = PrivacyEngine(accountant="rdp")
head, opt, loader = engine.make_private(
    module=head, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
    data_loader=DataLoader(TensorDataset(x[:1440], y[:1440]), batch_size=60))
for epoch in range(2):
    for tok, lab in loader:
        opt.zero_grad()
        enc_opt.zero_grad()
        nn.functional.cross_entropy(head(encoder(tok)), lab).backward()
        opt.step()
        enc_opt.step()
with torch.no_grad():
    acc = (head(encoder(x[1440:])).argmax(1) == y[1440:]).float().mean().item()
print("acc", acc, "eps", engine.get_epsilon(1e-5))
torch.save({"encoder": encoder.state_dict(), "head": head._module.state_dict()}, "two_part.pt")
