"""Backbone (with BatchNorm) trained on public digits, frozen in eval mode; private linear probe."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class Probe(nn.Module):
    def __init__(self, backbone, dim):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(dim, 10)
        for p in self.backbone.parameters():
            p.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def public_backbone(x, y):
    body = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )
    net = nn.Sequential(body, nn.Linear(12 * 16, 10))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(30):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    return body


def main():
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(d.target)
    public, private, test = slice(0, 300), slice(300, 1500), slice(1500, None)
    model = Probe(public_backbone(x[public], y[public]), 12 * 16)
    model.train()
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.head.parameters(), lr=0.3),
        data_loader=DataLoader(TensorDataset(x[private], y[private]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(4):
        model.train()
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(x[test]).argmax(1) == y[test]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
