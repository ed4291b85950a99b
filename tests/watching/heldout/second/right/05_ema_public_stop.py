import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


def teacher(n, seed, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g) + shift
    w = torch.randn(12, 4, generator=torch.Generator().manual_seed(7))
    return x / 3, (x @ w).argmax(1)


class Averager:
    def __init__(self, model, decay=0.95):
        self.shadow = copy.deepcopy(model.state_dict())
        self.decay = decay

    def update(self, model):
        for k, v in model.state_dict().items():
            self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)


def main():
    torch.manual_seed(41)
    x, y = teacher(1100, 0)
    public_x, public_y = teacher(300, 1, shift=0.3)
    net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
    ema = Averager(net)
    probe = copy.deepcopy(net).eval()
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.8),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=55),
        noise_multiplier=1.0, max_grad_norm=1.0)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer.original_optimizer, mode="max", patience=0)
    best, since = 0.0, 0
    for epoch in range(6):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
            ema.update(net)
        probe.load_state_dict(ema.shadow)
        with torch.no_grad():
            acc = (probe(public_x).argmax(1) == public_y).float().mean().item()
        plateau.step(acc)
        since = 0 if acc > best else since + 1
        best = max(best, acc)
        print(f"epoch {epoch} public acc {acc:.3f} eps {engine.get_epsilon(1e-5):.2f}")
        if epoch >= 2 and since >= 2:
            break
    torch.save(ema.shadow, "ema.pt")


main()
