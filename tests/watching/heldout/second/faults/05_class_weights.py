import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer

CLASS_WEIGHT = torch.tensor([0.6, 3.0])


class WeightedDPOptimizer(DPOptimizer):
    batch_weight = None

    def clip_and_accumulate(self):
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in self.grad_samples], 1).norm(dim=1)
        factor = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        factor = factor * self.batch_weight
        for p in self.params:
            summed = torch.einsum("i,i...", factor, self._get_flat_grad_sample(p))
            p.summed_grad = summed if p.summed_grad is None else p.summed_grad + summed


def load():
    X, y = make_classification(n_samples=1500, n_features=16, n_informative=8,
                               weights=[0.85], random_state=5)
    X = torch.tensor(X / 5.0, dtype=torch.float32)
    y = torch.tensor(y)
    return X[:1100], y[:1100], X[1100:], y[1100:]


def run(steps_epochs=4, batch=50):
    torch.manual_seed(1)
    X, y, Xt, yt = load()
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    base = torch.optim.SGD(model.parameters(), lr=0.4)
    engine = PrivacyEngine()
    model, dp_opt, loader = engine.make_private(
        module=model, optimizer=base, data_loader=DataLoader(TensorDataset(X, y), batch_size=batch),
        noise_multiplier=1.0, max_grad_norm=0.8)
    optimizer = WeightedDPOptimizer(
        base, noise_multiplier=dp_opt.noise_multiplier, max_grad_norm=dp_opt.max_grad_norm,
        expected_batch_size=dp_opt.expected_batch_size)
    optimizer.attach_step_hook(dp_opt.step_hook)

    for _ in range(steps_epochs):
        for xb, yb in loader:
            optimizer.zero_grad()
            optimizer.batch_weight = CLASS_WEIGHT[yb]
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()

    with torch.no_grad():
        pred = model(Xt).argmax(1)
    print("balanced accuracy", balanced_accuracy_score(yt, pred))
    print("epsilon", engine.get_epsilon(1e-5))
    torch.save(model.state_dict(), "weighted.pt")


run()
