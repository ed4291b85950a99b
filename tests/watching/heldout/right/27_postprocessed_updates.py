"""Post-processing only: noisy gradients are norm-limited and soft-thresholded, weights averaged (EMA)."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


@torch.no_grad()
def ema_update(avg, model, decay=0.95):
    for a, p in zip(avg.parameters(), model.parameters()):
        a.lerp_(p, 1 - decay)


def step(opt):
    if opt.pre_step():                                   # clip, sum, noise, account
        params = opt.params
        torch.nn.utils.clip_grad_norm_(params, max_norm=2.0)
        for p in params:
            p.grad = torch.nn.functional.softshrink(p.grad, 1e-4).to(torch.bfloat16).float()
        opt.original_optimizer.step()


def main():
    torch.manual_seed(29)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    averaged = copy.deepcopy(net)
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.5),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            step(opt)
            ema_update(averaged, net)
    with torch.no_grad():
        print("acc", (averaged(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
