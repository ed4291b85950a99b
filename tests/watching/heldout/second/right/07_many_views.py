import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

VIEWS = 4


class ShiftedDigits(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        views = []
        for _ in range(VIEWS):
            dx, dy = torch.randint(-1, 2, (2,)).tolist()
            views.append(torch.roll(self.images[i], (dx, dy), (0, 1)))
        return torch.stack(views), self.labels[i]


class ViewNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(64, 64)
        self.g = nn.Linear(64, 10)

    def forward(self, x):
        return self.g(F.relu(self.f(x.flatten(2))))


def view_loss(logits, target):
    per_view = -logits.log_softmax(-1).gather(2, target.view(-1, 1, 1).expand(-1, logits.shape[1], 1))
    return per_view.mean(dim=(1, 2)).mean()


torch.manual_seed(27)
d = load_digits()
images = torch.tensor(d.images / 16, dtype=torch.float32)
labels = torch.tensor(d.target)
perm = torch.randperm(len(images))
tr, te = perm[:1200], perm[1200:]
model = ViewNet()
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.8),
    data_loader=DataLoader(ShiftedDigits(images[tr], labels[tr]), batch_size=60),
    noise_multiplier=1.0, max_grad_norm=1.0)
for epoch in range(3):
    for views, target in loader:
        optimizer.zero_grad()
        view_loss(model(views), target).backward()
        optimizer.step()
with torch.no_grad():
    acc = (model(images[te].unsqueeze(1)).squeeze(1).argmax(1) == labels[te]).float().mean().item()
print("acc", acc, "eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "views.pt")
