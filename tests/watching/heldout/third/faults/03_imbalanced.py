import torch, torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _mark_as_processed

X, y = make_classification(2400, 20, n_informative=8, weights=[0.85], random_state=1)
X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
ds = TensorDataset(X[:2000], y[:2000])
CLASS_W = torch.tensor([1.0, 4.0])


class BalancedDPOptimizer(DPOptimizer):
    batch_weights = None

    def clip_and_accumulate(self):
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in self.grad_samples], 1).norm(dim=1)
        factor = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        factor = factor * self.batch_weights
        for p in self.params:
            p.summed_grad = torch.einsum("i,i...", factor, self._get_flat_grad_sample(p))
            _mark_as_processed(p.grad_sample)


class BalancedEngine(PrivacyEngine):
    def _prepare_optimizer(self, *, optimizer, noise_multiplier, max_grad_norm, expected_batch_size,
                           loss_reduction="mean", noise_generator=None, **kw):
        return BalancedDPOptimizer(optimizer, noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm,
                                   expected_batch_size=expected_batch_size, loss_reduction=loss_reduction,
                                   generator=noise_generator)


net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
engine = BalancedEngine()
net, opt, dl = engine.make_private_with_epsilon(
    module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.3), data_loader=DataLoader(ds, batch_size=80),
    target_epsilon=4.0, target_delta=1e-5, epochs=3, max_grad_norm=0.5)
for _ in range(3):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.batch_weights = CLASS_W[yb]
        opt.step()
with torch.no_grad():
    pred = net(X[2000:]).argmax(1)
rec = (pred[y[2000:] == 1] == 1).float().mean()
print("minority recall", rec.item(), "eps", engine.get_epsilon(1e-5))
