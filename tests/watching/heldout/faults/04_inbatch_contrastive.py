"""Private SimCLR-style representation learning on 8x8 digits."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(0)


class TwoViews(Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        im = self.images[i]
        v1 = torch.roll(im, shifts=int(torch.randint(-1, 2, ())), dims=-1)
        v2 = im + 0.1 * torch.randn_like(im)
        return v1.flatten(), v2.flatten()


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, dim))

    def forward(self, x):
        return F.normalize(self.body(x), dim=-1)


def info_nce(za, zb, temperature=0.2):
    logits = za @ zb.t() / temperature
    target = torch.arange(len(za))
    return F.cross_entropy(logits, target)


def run():
    images = torch.tensor(load_digits().images / 16.0, dtype=torch.float32)
    data = TwoViews(images[:1600])
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(data, batch_size=80),
        noise_multiplier=0.8,
        max_grad_norm=1.0,
    )
    model.train()
    for epoch in range(4):
        for a, b in loader:
            optimizer.zero_grad()
            za, zb = model(a), model(b)
            info_nce(za, zb).backward()
            optimizer.step()
    print("spent epsilon:", round(engine.get_epsilon(1e-5), 3))


if __name__ == "__main__":
    run()
