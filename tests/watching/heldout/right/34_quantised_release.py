"""Weights are pruned by magnitude and quantised to int8 after private training (post-processing)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def compress(net, keep=0.7):
    packed = {}
    for name, p in net.named_parameters():
        w = p.detach().clone()
        if w.dim() > 1:
            cut = w.abs().flatten().kthvalue(int((1 - keep) * w.numel()) + 1).values
            w[w.abs() < cut] = 0
        scale = w.abs().max().clamp(min=1e-8) / 127
        packed[name] = ((w / scale).round().to(torch.int8), scale)
    return packed


def unpack(net, packed):
    with torch.no_grad():
        for name, p in net.named_parameters():
            q, scale = packed[name]
            p.copy_(q.float() * scale)


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.4),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    net = model.to_standard_module()
    unpack(net, compress(net))
    with torch.no_grad():
        print("acc", (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
