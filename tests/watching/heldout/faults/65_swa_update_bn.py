"""Stochastic weight averaging after private training; BN statistics re-estimated at the end."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.bn = nn.BatchNorm1d(64, affine=False)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn(self.fc1(x))))


def main():
    torch.manual_seed(100)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = Net()
    loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60)
    engine = PrivacyEngine(accountant="rdp")
    model, opt, dp_loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.3),
        data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0)
    averaged = AveragedModel(Net())
    for epoch in range(4):
        model.train()
        net.bn.eval()                     # no batch statistics while the gradients are private
        for xb, yb in dp_loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
        if epoch >= 2:
            averaged.update_parameters(net)
    update_bn(loader, averaged)
    averaged.eval()
    with torch.no_grad():
        print("acc", (averaged(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
