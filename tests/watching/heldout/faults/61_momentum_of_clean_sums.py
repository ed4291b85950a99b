import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class DenoisedMomentum(torch.optim.Optimizer):
    """SGD whose velocity follows the clipped sums (less jitter than following the noisy ones)."""

    def __init__(self, params, lr=0.1, beta=0.9, batch=1):
        super().__init__(params, dict(lr=lr, beta=beta))
        self.batch = batch

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = self.state[p].setdefault("velocity", torch.zeros_like(p))
                clean = getattr(p, "summed_grad", None)
                signal = p.grad if clean is None else clean.view_as(p) / self.batch
                buf.mul_(group["beta"]).add_(signal, alpha=1 - group["beta"])
                p.sub_(group["lr"] * (0.5 * p.grad + 0.5 * buf))


def main():
    torch.manual_seed(73)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=DenoisedMomentum(model.parameters(), lr=0.4, batch=60),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
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
