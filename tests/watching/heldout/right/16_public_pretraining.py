"""Pre-train without privacy on a public split, fine-tune with DP on the private one."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def digits():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    cut = {"public": slice(0, 300), "private": slice(300, 1500), "test": slice(1500, 1797)}
    return {k: TensorDataset(X[s], y[s]) for k, s in cut.items()}


def pretrain(model, dataset):
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(4):
        for x, y in DataLoader(dataset, batch_size=50, shuffle=True):
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()


def finetune(model, dataset, epochs=4):
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9),
        data_loader=DataLoader(dataset, batch_size=60), noise_multiplier=1.1, max_grad_norm=1.0)
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
    return model, engine


if __name__ == "__main__":
    torch.manual_seed(42)
    data = digits()
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    pretrain(net, data["public"])
    net, engine = finetune(net, data["private"])
    xt, yt = data["test"].tensors
    with torch.no_grad():
        print("acc", (net(xt).argmax(1) == yt).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))
