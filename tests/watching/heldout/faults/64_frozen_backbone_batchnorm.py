"""Fine-tune a head privately on top of a frozen convolutional backbone."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def backbone():
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
    )
    for p in net.parameters():
        p.requires_grad_(False)
    return net


class Transfer(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = backbone()
        self.head = nn.Linear(16 * 9, 10)

    def forward(self, x):
        return self.head(self.backbone(x))


def main():
    torch.manual_seed(0)
    d = load_digits()
    X = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(d.target)
    model = Transfer()
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.2)
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=opt,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        model.train()
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
