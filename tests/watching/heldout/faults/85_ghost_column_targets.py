"""Ghost clipping for a regression task with one output column."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

N, D = 2000, 10


def housing(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, D, generator=g)
    price = 0.3 * x[:, :3].sum(1, keepdim=True) + 0.05 * torch.randn(n, 1, generator=g)
    return x, price


def main():
    torch.manual_seed(16)
    x, price = housing(N, 1)
    xv, pv = housing(400, 2)
    model = nn.Sequential(nn.Linear(D, 24), nn.ReLU(), nn.Linear(24, 1))
    engine = PrivacyEngine()
    model, opt, criterion, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        criterion=nn.MSELoss(),
        data_loader=DataLoader(TensorDataset(x, price), batch_size=40),
        noise_multiplier=1.0,
        max_grad_norm=0.5,
        grad_sample_mode="ghost",
    )
    for _ in range(2):
        for xb, pb in loader:
            opt.zero_grad()
            loss = criterion(model(xb), pb)
            loss.backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        print("val mse", nn.functional.mse_loss(model(xv), pv).item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
