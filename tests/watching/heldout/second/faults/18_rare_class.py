import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from sklearn.datasets import make_classification
from opacus import PrivacyEngine


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = nn.Linear(d, 32)
        self.b = nn.Linear(32, 2)

    def forward(self, x):
        return self.b(torch.sigmoid(self.a(x)))


def loaders(batch_size):
    X, y = make_classification(n_samples=1600, n_features=15, n_informative=7,
                               weights=[0.9], random_state=12)
    X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
    train = TensorDataset(X[:1200], y[:1200])
    draw = WeightedRandomSampler(torch.tensor([1.0, 6.0])[y[:1200]], num_samples=1200)
    return DataLoader(train, batch_size=batch_size, sampler=draw), X[1200:], y[1200:]


def main():
    torch.manual_seed(44)
    loader, xt, yt = loaders(60)
    model = Net(15)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0,
        max_grad_norm=1.0, poisson_sampling=False)
    for epoch in range(4):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        pred = model(xt).argmax(1)
    recall = (pred[yt == 1] == 1).float().mean().item()
    print(f"recall on rare class {recall:.2f}, eps {engine.get_epsilon(1e-5):.2f}")
    torch.save(model.state_dict(), "rare.pt")


main()
