import argparse
import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

ap = argparse.ArgumentParser()
ap.add_argument("--epochs", type=int, default=3)
ap.add_argument("--cooldown-epochs", type=int, default=2)
ap.add_argument("--epsilon", type=float, default=2.5)
args = ap.parse_args()

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16.0).float(), torch.tensor(y)
loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=100)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
engine = PrivacyEngine()
model, opt, loader = engine.make_private_with_epsilon(
    module=model, optimizer=opt, data_loader=loader, epochs=args.epochs,
    target_epsilon=args.epsilon, target_delta=1e-5, max_grad_norm=1.0)


def train(n):
    for _ in range(n):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()


train(args.epochs)
for g in opt.param_groups:
    g["lr"] *= 0.1
train(args.cooldown_epochs)
acc = (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item()
print(f"acc {acc:.3f} (eps = {args.epsilon}, delta = 1e-5)")
torch.save({"state": model._module.state_dict(), "epsilon": args.epsilon}, "ckpt.pt")
