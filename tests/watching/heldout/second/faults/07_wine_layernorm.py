import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_wine
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _mark_as_processed

SCALE = torch.tensor([15., 6., 3.5, 30., 160., 4., 5., 0.7, 4., 13., 2., 4., 1700.])


class MatrixNormOptimizer(DPOptimizer):
    def clip_and_accumulate(self):
        matrices = [g for p, g in zip(self.params, self.grad_samples) if p.dim() > 1]
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in matrices]).norm(dim=0)
        clip = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        for p in self.params:
            g = torch.einsum("i,i...", clip, self._get_flat_grad_sample(p))
            p.summed_grad = g if p.summed_grad is None else p.summed_grad + g
            _mark_as_processed(p.grad_sample)


class Engine(PrivacyEngine):
    def _prepare_optimizer(self, *, optimizer, noise_multiplier, max_grad_norm,
                           expected_batch_size, loss_reduction="mean", **kwargs):
        return MatrixNormOptimizer(optimizer, noise_multiplier=noise_multiplier,
                                   max_grad_norm=max_grad_norm,
                                   expected_batch_size=expected_batch_size,
                                   loss_reduction=loss_reduction)


def main():
    torch.manual_seed(5)
    X, y = load_wine(return_X_y=True)
    X = torch.tensor(X, dtype=torch.float32) / SCALE - 0.5
    y = torch.tensor(y)
    perm = torch.randperm(len(X))
    tr, te = perm[:140], perm[140:]
    model = nn.Sequential(nn.Linear(13, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    engine = Engine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[tr], y[tr]), batch_size=28),
        noise_multiplier=1.5, max_grad_norm=0.4)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(12):
        for xb, yb in loader:
            optimizer.zero_grad(set_to_none=True)
            loss_fn(model(xb), yb).backward()
            optimizer.step()
    with torch.no_grad():
        acc = (model(X[te]).argmax(1) == y[te]).float().mean().item()
    print(f"test accuracy {acc:.2f} at eps={engine.get_epsilon(1e-3):.2f}")
    torch.save(model._module.state_dict(), "wine.pt")


main()
