import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

K = 3
d = load_digits()
IMG, LAB = torch.tensor(d.images, dtype=torch.float32) / 16, torch.tensor(d.target)


class Part(Dataset):
    def __init__(self, idx):
        self.idx = idx

    def __len__(self):
        return len(self.idx)

    def __getitem__(self, i):
        return IMG[self.idx[i]], LAB[self.idx[i]]


def collate(samples):
    out = []
    for img, _ in samples:
        shifts = torch.randint(-1, 2, (K, 2)).tolist()
        out.append(torch.stack([torch.roll(img, s, dims=(0, 1)).flatten() for s in shifts]))
    return torch.stack(out), torch.stack([l for _, l in samples])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
pe = PrivacyEngine()
net, opt, dl = pe.make_private_with_epsilon(
    module=net, optimizer=opt, data_loader=DataLoader(Part(range(1400)), batch_size=70, collate_fn=collate),
    target_epsilon=4.0, target_delta=1e-5, epochs=3, max_grad_norm=1.0)
for _ in range(3):
    for xb, yb in dl:
        opt.zero_grad()
        logits = net(xb)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), yb[:, None].expand(-1, K), reduction="none").mean(1).mean()
        loss.backward()
        opt.step()
with torch.no_grad():
    print("acc", (net(IMG[1400:].flatten(1)).argmax(1) == LAB[1400:]).float().mean().item(), "eps", pe.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "views.pt")
