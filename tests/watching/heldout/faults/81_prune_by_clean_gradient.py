"""Movement-style pruning: after training drop the weights with the smallest |w * grad|."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def saliency_prune(net, X, y, sparsity=0.5):
    net.zero_grad()
    for p in net.parameters():
        p.requires_grad_(True)
    nn.functional.cross_entropy(net(X), y).backward()
    for m in net:
        if isinstance(m, nn.Linear):
            score = (m.weight * m.weight.grad).abs()
            threshold = score.flatten().kthvalue(int(sparsity * score.numel())).values
            with torch.no_grad():
                m.weight.mul_(score > threshold)


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    dp, opt, loader = engine.make_private(
        module=net, optimizer=torch.optim.AdamW(net.parameters(), lr=4e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(dp(xb), yb).backward()
            opt.step()
    net = dp.to_standard_module()
    saliency_prune(net, X[:1500], y[:1500])
    with torch.no_grad():
        print("acc", (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
