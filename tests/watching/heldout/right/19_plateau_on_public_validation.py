"""ReduceLROnPlateau and model selection on a public validation split."""
import copy

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    logits = model(x)
    model.train()
    return nn.functional.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(12)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    Xv, yv, Xt, yt = X[1400:1600], y[1400:1600], X[1600:], y[1600:]
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    base = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9)
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=base,
        data_loader=DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=70),
        noise_multiplier=1.1, max_grad_norm=1.0)
    plateau = ReduceLROnPlateau(base, factor=0.5, patience=0)
    best, best_state = float("inf"), None
    for epoch in range(6):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
        val_loss, val_acc = validate(model, Xv, yv)
        plateau.step(val_loss)
        print(f"epoch {epoch} val loss {val_loss:.3f} val acc {val_acc:.3f}")
        if val_loss < best:
            best, best_state = val_loss, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print("test acc", validate(model, Xt, yt)[1], "eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
