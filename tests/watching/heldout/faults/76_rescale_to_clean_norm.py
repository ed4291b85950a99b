"""Noise inflates the gradient norm; scale the noisy gradient back to the norm before noise."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def global_norm(tensors):
    return torch.stack([t.norm() for t in tensors]).norm()


def step(opt):
    if not opt.pre_step():
        return
    denom = opt.expected_batch_size
    target = global_norm([p.summed_grad / denom for p in opt.params])
    current = global_norm([p.grad for p in opt.params])
    for p in opt.params:
        p.grad.mul_(target / (current + 1e-12))
    opt.original_optimizer.step()


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(4):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            step(opt)
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
