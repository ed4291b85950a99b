"""OHEM: only the hardest half of every Poisson batch contributes to the update."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def hardest(model, x, y, keep=0.5):
    with torch.no_grad():
        loss = F.cross_entropy(model(x), y, reduction="none")
    idx = loss.topk(max(1, int(keep * len(loss)))).indices
    return x[idx], y[idx]


def main(epochs=3, batch_size=60, sigma=1.0, C=1.0):
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.6)
    pe = PrivacyEngine()
    model, opt, loader = pe.make_private(
        module=model, optimizer=opt,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=batch_size),
        noise_multiplier=sigma, max_grad_norm=C, grad_sample_mode="functorch")
    for _ in range(epochs):
        for xb, yb in loader:
            xb, yb = hardest(model, xb, yb)
            opt.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item(),
              "eps", pe.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
