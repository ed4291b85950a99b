"""Adaptive clipping: every step uses the median gradient norm of its batch as threshold."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer


class MedianClipOptimizer(DPOptimizer):
    def clip_and_accumulate(self):
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in self.grad_samples], 1).norm(dim=1)
        self.max_grad_norm = norms.median().item()
        super().clip_and_accumulate()


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=3e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    opt.__class__ = MedianClipOptimizer
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
