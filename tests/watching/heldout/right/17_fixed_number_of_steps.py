import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

MAX_STEPS = 85


class StepLimit(Exception):
    pass


class Loop:
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader, self.steps = model, optimizer, loader, 0

    def epoch(self):
        for x, y in self.loader:
            if self.steps >= MAX_STEPS:
                raise StepLimit
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
            self.steps += 1

    def run(self):
        try:
            while True:
                self.epoch()
        except StepLimit:
            return self.steps


X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
net = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
engine = PrivacyEngine(accountant="rdp")
net, opt, loader = engine.make_private(
    module=net, optimizer=torch.optim.Adam(net.parameters(), lr=5e-3),
    data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50),
    noise_multiplier=1.0, max_grad_norm=1.0)
print("steps", Loop(net, opt, loader).run())
with torch.no_grad():
    print("acc", (net(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
