import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

MAX_LR, SCALE = 3.0, 0.1


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 8, generator=g) * 2 - 1
    y = (x[:, :4].pow(2).sum(1) > x[:, 4:].pow(2).sum(1)).long()
    return x, y


def polyak(loss, optimizer, floor=0.05):
    sq = sum(p.grad.pow(2).sum() for p in optimizer.params)
    return min(MAX_LR, max(floor, float(SCALE * loss / (sq + 1e-3))))


def train():
    torch.manual_seed(12)
    x, y = make(1200, 0)
    xt, yt = make(400, 1)
    model = nn.Sequential(nn.Linear(8, 40), nn.ReLU(), nn.Linear(40, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=80),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for epoch in range(5):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            if optimizer.pre_step():
                for group in optimizer.param_groups:
                    group["lr"] = polyak(loss.item(), optimizer)
                optimizer.original_optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(xt).argmax(1) == yt).float().mean().item()
    print(f"accuracy {acc:.3f} epsilon {engine.get_epsilon(1e-5):.2f}")
    torch.save(model._module.state_dict(), "polyak.pt")


train()
