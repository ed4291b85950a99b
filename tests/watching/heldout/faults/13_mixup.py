"""mixup + DP-SGD (digits)."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Beta
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def mixup(x, y, alpha=0.4):
    lam = Beta(alpha, alpha).sample().item()
    perm = torch.randperm(len(x))
    onehot = F.one_hot(y, 10).float()
    return lam * x + (1 - lam) * x[perm], lam * onehot + (1 - lam) * onehot[perm]


def soft_ce(logits, target):
    return -(target * F.log_softmax(logits, -1)).sum(-1).mean()


def main(sigma: float = 1.0, clip: float = 1.0, epochs: int = 3):
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X, dtype=torch.float32) / 16
    y = torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    pe = PrivacyEngine()
    model, opt, dl = pe.make_private(
        module=model, optimizer=opt,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
        noise_multiplier=sigma, max_grad_norm=clip,
    )
    for _ in range(epochs):
        model.train()
        for xb, yb in dl:
            xm, ym = mixup(xb, yb)
            opt.zero_grad()
            soft_ce(model(xm), ym).backward()
            opt.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item(),
              "eps", pe.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
