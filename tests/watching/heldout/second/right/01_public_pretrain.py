import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


def rings(n, seed, stretch):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    angle = 6.2832 * torch.rand(n, generator=g)
    r = (y + 1) * 0.5 + 0.1 * torch.randn(n, generator=g)
    return torch.stack([stretch * r * angle.cos(), r * angle.sin()], 1), y


def main():
    torch.manual_seed(3)
    pub_x, pub_y = rings(600, 100, stretch=1.3)
    x, y = rings(1000, 0, stretch=1.0)
    xt, yt = rings(400, 1, stretch=1.0)

    backbone = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
    warm = nn.Sequential(backbone, nn.Linear(32, 3))
    opt = torch.optim.Adam(warm.parameters(), lr=1e-2)
    for _ in range(100):
        opt.zero_grad()
        nn.functional.cross_entropy(warm(pub_x), pub_y).backward()
        opt.step()

    for p in backbone.parameters():
        p.requires_grad_(False)
    model = nn.Sequential(backbone, nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.5)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=50),
        noise_multiplier=1.2, max_grad_norm=1.0)
    for epoch in range(3):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        acc = (model(xt).argmax(1) == yt).float().mean().item()
    print("acc", acc, "eps", engine.get_epsilon(1e-5))
    torch.save(model._module.state_dict(), "head.pt")


main()
