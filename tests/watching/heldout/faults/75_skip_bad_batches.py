"""Loss-spike guard: batches with an exploding loss are dropped, as in LLM training."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

SPIKE = 1.4


class SpikeGuard:
    def __init__(self):
        self.ema = None

    def __call__(self, value):
        spike = self.ema is not None and value > SPIKE * self.ema
        if not spike:
            self.ema = value if self.ema is None else 0.9 * self.ema + 0.1 * value
        return spike


def main():
    torch.manual_seed(44)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=30),
        noise_multiplier=1.0, max_grad_norm=1.0)
    guard = SpikeGuard()
    for _ in range(2):
        for xb, yb in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            if guard(loss.item()):
                continue
            opt.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
