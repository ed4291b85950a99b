import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    ap = argparse.ArgumentParser("dp-mlp")
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--microbatch", type=int, default=4, help="records per microbatch")
    ap.add_argument("--sigma", type=float, default=1.1)
    ap.add_argument("--clip", type=float, default=0.5)
    ap.add_argument("--lr", type=float, default=0.5)
    return ap.parse_args()


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc1 = nn.Linear(d, 16)
        self.fc2 = nn.Linear(16, 2)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def crowd_labelled(n, seed, d=12, error=0.06):
    g = torch.Generator().manual_seed(seed)
    truth = torch.randint(0, 2, (n,), generator=g)
    x = torch.randn(n, d, generator=g) * 0.7 + (2.0 * truth - 1)[:, None]
    mistake = torch.rand(n, generator=g) < error
    return x, torch.where(mistake, 1 - truth, truth), truth


def group_gradients(params, k):
    """As in TF-Privacy: average the gradients of a microbatch before clipping."""
    for p in params:
        p.grad_sample = torch.stack([c.mean(0) for c in p.grad_sample.split(k)])


def main(args):
    x, labels, _ = crowd_labelled(2048, 7)
    test_x, _, test_y = crowd_labelled(500, 8)
    net = Net(x.shape[1])
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    engine = PrivacyEngine()
    net, opt, dl = engine.make_private(
        module=net,
        optimizer=opt,
        data_loader=DataLoader(TensorDataset(x, labels), batch_size=args.batch_size),
        noise_multiplier=args.sigma,
        max_grad_norm=args.clip,
    )
    for _ in range(args.epochs):
        for xb, t in dl:
            opt.zero_grad()
            F.cross_entropy(net(xb), t).backward()
            group_gradients(opt.params, args.microbatch)
            opt.step()
    net.eval()
    with torch.no_grad():
        print("test accuracy", (net(test_x).argmax(-1) == test_y).float().mean().item())
    print("epsilon", engine.get_epsilon(delta=1e-5))


if __name__ == "__main__":
    main(get_args())
