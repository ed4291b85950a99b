import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

VIEWS = 3


class Digits(Dataset):
    def __init__(self, lo, hi):
        d = load_digits()
        self.x = torch.tensor(d.images[lo:hi], dtype=torch.float32).unsqueeze(1) / 16.0
        self.y = d.target[lo:hi]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], int(self.y[i])


def collate_views(samples):
    imgs, labels = [], []
    for img, lab in samples:
        for _ in range(VIEWS):
            dx, dy = torch.randint(-1, 2, (2,)).tolist()
            imgs.append(torch.roll(img, (dy, dx), dims=(1, 2)))
            labels.append(lab)
    return torch.stack(imgs), torch.tensor(labels)


net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
loader = DataLoader(Digits(0, 1400), batch_size=50, collate_fn=collate_views)
pe = PrivacyEngine()
net, opt, loader = pe.make_private_with_epsilon(
    module=net, optimizer=opt, data_loader=loader, target_epsilon=6, target_delta=1e-5, epochs=2, max_grad_norm=1.0)
for e in range(2):
    net.train()
    for xb, yb in loader:
        opt.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
test = Digits(1400, 1797)
net.eval()
with torch.no_grad():
    acc = (net(test.x).argmax(1).numpy() == test.y).mean()
print("acc", acc, "eps", pe.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "cnn.pt")
