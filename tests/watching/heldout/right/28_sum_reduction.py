import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

g = torch.Generator().manual_seed(18)
N, D = 2400, 9
X = torch.randn(N + 400, D, generator=g)
Y = torch.sin(X[:, :3].sum(1)) + 0.05 * torch.randn(N + 400, generator=g)


def main(batch=60):
    model = nn.Sequential(nn.Linear(D, 32), nn.Tanh(), nn.Linear(32, 1))
    # gradients are sums over the batch, so the learning rate carries the 1/batch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3 / batch, momentum=0.9)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:N], Y[:N]), batch_size=batch),
        noise_multiplier=1.0, max_grad_norm=1.0, loss_reduction="sum")
    criterion = nn.MSELoss(reduction="sum")
    for _ in range(3):
        for xb, yb in loader:
            optimizer.zero_grad()
            criterion(model(xb).squeeze(1), yb).backward()
            optimizer.step()
    with torch.no_grad():
        print("mse", nn.functional.mse_loss(model(X[N:]).squeeze(1), Y[N:]).item())
    print("eps", engine.get_epsilon(1e-5))


main()
