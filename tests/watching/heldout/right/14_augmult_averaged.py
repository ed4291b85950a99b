"""Augmentation multiplicity (De et al., 2022): gradients of the K views of an image are averaged
into one per-sample gradient before clipping."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

SHIFTS = [(0, 0), (0, 1), (1, 0), (-1, 0)]
K = len(SHIFTS)


def views(x):
    v = torch.stack([torch.roll(x, s, (-2, -1)) for s in SHIFTS], dim=1)      # (batch, K, 1, 8, 8)
    return v.flatten(0, 1)


def merge_views(params, batch):
    for p in params:
        gs = p.grad_sample
        p.grad_sample = gs.reshape(batch, K, *gs.shape[1:]).mean(dim=1)


def main():
    torch.manual_seed(8)
    d = load_digits()
    X = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(d.target)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 10))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.4),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=40),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(2):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(views(xb)), yb.repeat_interleave(K)).backward()
            merge_views(opt.params, len(xb))
            opt.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
