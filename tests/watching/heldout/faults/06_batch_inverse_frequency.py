"""Imbalanced binary problem with noisy labels; the loss is rebalanced on the fly."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from opacus import PrivacyEngine

N, D = 3000, 15


def screening_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    sick = torch.rand(n, generator=g) < 0.10
    x = torch.randn(n, D, generator=g) * 0.5 + torch.where(sick, 1.0, -1.0)[:, None]
    wrong = torch.rand(n, generator=g) < 0.03           # label noise
    return x, (sick ^ wrong).long(), sick.long()


def balanced_ce(logits, target):
    counts = torch.bincount(target, minlength=2).clamp(min=1).float()
    weight = counts.sum() / (2 * counts)
    return (weight[target] * F.cross_entropy(logits, target, reduction="none")).mean()


def main():
    x, y, _ = screening_data(N, 3)
    x_ev, _, sick = screening_data(600, 4)
    net = nn.Linear(D, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.004)
    pe = PrivacyEngine()
    net, opt, dl = pe.make_private(
        module=net,
        optimizer=opt,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True),
        noise_multiplier=1.2,
        max_grad_norm=12.0,
        grad_sample_mode="functorch",
    )
    for _ in range(2):
        for xb, yb in dl:
            opt.zero_grad()
            balanced_ce(net(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        recall = (net(x_ev).argmax(1)[sick == 1] == 1).float().mean()
    print(f"recall on held-out: {recall:.3f}; eps={pe.get_epsilon(1e-5):.2f}")


main()
