import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine


def focal_loss(logits, target, gamma=2.0):
    logp = logits.log_softmax(1).gather(1, target[:, None]).squeeze(1)
    return (-(1 - logp.exp()) ** gamma * logp).mean()


class Detector(nn.Module):
    def __init__(self, d, classes, frequencies):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)
        nn.init.zeros_(self.head.weight)
        with torch.no_grad():
            self.head.bias.copy_(frequencies.clamp_min(1e-3).log())

    def forward(self, x):
        return self.head(self.body(x))


def main():
    torch.manual_seed(30)
    X, y = make_classification(1500, 14, n_informative=8, n_classes=4,
                               weights=[0.6, 0.2, 0.15, 0.05], random_state=2)
    X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
    xtr, ytr, xte, yte = X[:1150], y[:1150], X[1150:], y[1150:]
    model = Detector(14, 4, torch.bincount(ytr, minlength=4) / len(ytr))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(xtr, ytr), batch_size=50),
        noise_multiplier=1.0, max_grad_norm=0.5)
    for _ in range(3):
        for xb, yb in loader:
            optimizer.zero_grad()
            focal_loss(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        acc = (model(xte).argmax(1) == yte).float().mean().item()
    print("acc", acc, "eps", engine.get_epsilon(1e-5))
    torch.save(model._module.state_dict(), "detector.pt")


main()
