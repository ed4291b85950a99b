"""Logs the norm of the privatised gradient of every step through Opacus' step hook."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class NormLogger:
    def __init__(self):
        self.values = []

    def __call__(self, optim):
        sq = sum(p.grad.pow(2).sum() for p in optim.params)
        self.values.append(float(sq) ** 0.5)


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    logger = NormLogger()
    optimizer.attach_step_hook(logger)
    for epoch in range(3):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
        print(f"epoch {epoch} mean noisy grad norm {sum(logger.values) / len(logger.values):.3f}")
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    history = engine.accountant.history
    print("eps", engine.get_epsilon(1e-5) if history else 0.0)


if __name__ == "__main__":
    main()
