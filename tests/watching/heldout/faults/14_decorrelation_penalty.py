import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

# Barlow-style decorrelation of the hidden units. The penalty is a batch statistic, so it has
# no per-sample gradient; its gradient joins the clipped sum before the noise is added.


class MLP(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc2 = nn.Linear(hidden, 10)

    def features(self, x):
        return torch.tanh(self.fc1(x))

    def forward(self, x):
        return self.fc2(self.features(x))


def decorrelation(h):
    h = h - h.mean(0)
    cov = h.t() @ h / max(len(h) - 1, 1)
    return (cov - torch.diag(torch.diag(cov))).pow(2).sum()


class Run:
    penalty = 0.5

    def __init__(self):
        torch.manual_seed(17)
        X, y = load_digits(return_X_y=True)
        X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
        self.eval_xy = X[1500:], y[1500:]
        self.raw = MLP()
        self.engine = PrivacyEngine(accountant="rdp")
        self.model, self.opt, self.loader = self.engine.make_private(
            module=self.raw,
            optimizer=torch.optim.SGD(self.raw.parameters(), lr=0.4),
            data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
            noise_multiplier=1.0,
            max_grad_norm=0.5,
        )

    def batch_penalty_grad(self, x):
        self.model.disable_hooks()
        value = self.penalty * decorrelation(self.raw.features(x))
        grads = torch.autograd.grad(value, list(self.raw.fc1.parameters()))
        self.model.enable_hooks()
        return grads

    def step(self, x, y):
        self.opt.zero_grad()
        nn.functional.cross_entropy(self.model(x), y).backward()
        extra = self.batch_penalty_grad(x)
        self.opt.clip_and_accumulate()
        for p, g in zip(self.raw.fc1.parameters(), extra):
            p.summed_grad += len(x) * g
        self.opt.add_noise()
        self.opt.scale_grad()
        self.opt.step_hook(self.opt)
        self.opt.original_optimizer.step()

    def main(self):
        for _ in range(3):
            for x, y in self.loader:
                self.step(x, y)
        with torch.no_grad():
            x, y = self.eval_xy
            print("acc", (self.raw(x).argmax(1) == y).float().mean().item())
        print("eps", self.engine.get_epsilon(1e-5))


if __name__ == "__main__":
    Run().main()
