"""Prototype classifier: DP-trained embedding, class centroids tracked with an EMA."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class Embedder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, dim))
        self.head = nn.Linear(dim, 10)
        self.register_buffer("prototypes", torch.zeros(10, dim))

    def forward(self, x):
        return self.head(self.net(x))

    @torch.no_grad()
    def update_prototypes(self, x, y, momentum=0.95):
        z = self.net(x)
        for c in y.unique():
            self.prototypes[c].mul_(momentum).add_(z[y == c].mean(0), alpha=1 - momentum)

    @torch.no_grad()
    def predict(self, x):
        return torch.cdist(self.net(x), self.prototypes).argmin(1)


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    core = Embedder()
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=core, optimizer=torch.optim.AdamW(core.parameters(), lr=3e-3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            opt.step()
            core.update_prototypes(xb, yb)
    print("acc", (core.predict(X[1500:]) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))
    return core.state_dict()


if __name__ == "__main__":
    main()
