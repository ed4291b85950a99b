import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class EarlyStopping:
    def __init__(self, patience=1, min_delta=0.2):
        self.best, self.bad, self.patience, self.min_delta = float("inf"), 0, patience, min_delta

    def should_stop(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    torch.manual_seed(19)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    ce, stopper = nn.CrossEntropyLoss(), EarlyStopping()
    for epoch in range(8):
        running, steps = 0.0, 0
        for xb, yb in loader:
            opt.zero_grad()
            loss = ce(model(xb), yb)
            loss.backward()
            opt.step()
            running, steps = running + loss.item(), steps + 1
        if stopper.should_stop(running / steps):
            break
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("epochs run", epoch + 1, "eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
