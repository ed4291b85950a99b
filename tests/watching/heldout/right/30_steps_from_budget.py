"""The number of steps is computed in advance from the budget (no look at the data)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.accountants import RDPAccountant

EPS, DELTA, SIGMA, BATCH, N = 2.5, 1e-5, 1.0, 50, 1500


def affordable_steps(q):
    steps, acc = 0, RDPAccountant()
    while True:
        acc.history = [(SIGMA, q, steps + 5)]
        if acc.get_epsilon(delta=DELTA) > EPS:
            return steps
        steps += 5


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.5),
        data_loader=DataLoader(TensorDataset(X[:N], y[:N]), batch_size=BATCH),
        noise_multiplier=SIGMA, max_grad_norm=1.0)
    remaining = affordable_steps(loader.sample_rate)
    while remaining > 0:
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
            remaining -= 1
            if remaining == 0:
                break
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(DELTA))


if __name__ == "__main__":
    main()
