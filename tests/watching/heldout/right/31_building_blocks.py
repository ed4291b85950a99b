"""DP-SGD assembled from GradSampleModule, DPOptimizer, DPDataLoader and an accountant."""
import torch
from torch import nn
from torch.utils.data import TensorDataset
from sklearn.datasets import load_digits
from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer


def main(q=0.04, sigma=1.1, clip=1.0, epochs=3):
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    train = TensorDataset(X[:1500], y[:1500])
    loader = DPDataLoader(train, sample_rate=q)
    model = GradSampleModule(nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 10)))
    accountant = RDPAccountant()
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.5),
        noise_multiplier=sigma, max_grad_norm=clip, expected_batch_size=int(q * len(train)))
    optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=q))
    for _ in range(epochs):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", accountant.get_epsilon(delta=1e-5))


if __name__ == "__main__":
    main()
