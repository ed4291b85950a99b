"""DP-SGD as people write it by hand, right and with faults. It knows nothing of Epsilometer."""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("loop", choices=["vmap", "single", "hooks", "microbatches", "functional"])
parser.add_argument("fault", nargs="?", default="right")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--records", type=int, default=400)
parser.add_argument("--sigma", type=float, default=1.0)
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--accountant", choices=["none", "opacus", "dp-accounting"], default="none")
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
fault, C, SIGMA, BATCH = options.fault, options.clip, options.sigma, options.batch

if options.seed >= 0:
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
digits = load_digits()
X = torch.tensor(digits.data[: options.records] / 16, dtype=torch.float32)
Y = torch.tensor(digits.target[: options.records])
model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
loss_of = nn.CrossEntropyLoss(reduction="sum")
names = [name for name, _ in model.named_parameters()]
first = {}  # the noise of the first step


def clipped(gradients, step):
    """Gradients of records, one row each → their clipped sum."""
    many = len(gradients[0])
    norms = torch.stack([g.reshape(many, -1).norm(dim=1) for g in gradients])
    if fault == "no-clipping" or (fault == "late-clipping" and step >= options.steps // 2):
        factors = torch.ones_like(norms)
    elif fault == "tensor-clipping":
        factors = (C / (norms + 1e-6)).clamp(max=1.0)
    elif fault == "mean-clipping":
        whole = (norms.square().sum(0).sqrt().mean() + 1e-6).repeat(many)
        factors = (C / whole).clamp(max=1.0).repeat(len(norms), 1)
    elif fault == "weights-only":
        rows = [at for at, name in enumerate(names) if "weight" in name]
        factors = (C / (norms[rows].square().sum(0).sqrt() + 1e-6)).clamp(max=1.0).repeat(len(norms), 1)
        for at, name in enumerate(names):
            if "weight" not in name:
                factors[at] = 1.0
    else:
        factors = (C / (norms.square().sum(0).sqrt() + 1e-6)).clamp(max=1.0).repeat(len(norms), 1)
    return [torch.einsum("r,r...->...", factor, g) for factor, g in zip(factors, gradients, strict=True)]


def noise(name, like, step):
    """Of the sum."""
    deviation = SIGMA * C
    if fault == "half-noise":
        deviation /= 2
    silent = {"no-noise": True, "no-bias-noise": "bias" in name, "sometimes": step % 2}
    if silent.get(fault):
        return torch.zeros_like(like)
    if fault == "divided":
        deviation /= BATCH
    if fault == "same-noise":
        return first.setdefault(name, torch.randn(like.shape)) * deviation
    return drawn(like, deviation)


def drawn(like, deviation):
    """In the ways of different people."""
    if options.loop == "hooks":
        return torch.from_numpy(np.random.default_rng().normal(0.0, deviation, like.shape)).float()
    if options.loop == "microbatches":
        return torch.normal(0.0, deviation, size=like.shape)
    if options.loop == "single":
        return torch.empty_like(like).normal_(0.0, deviation)
    return deviation * torch.randn_like(like)


def per_record(x, y):
    """By vmap."""

    def loss(parameters, one, label):
        return loss_of(functional_call(model, parameters, (one[None],)), label[None])

    parameters = {name: p.detach() for name, p in model.named_parameters()}
    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    return [found[name] for name in names]


def private_gradients(gradients, step):
    sums = clipped(gradients, step)
    return [(s + noise(name, s, step)) / BATCH for name, s in zip(names, sums, strict=True)]


def by_vmap():
    loader = DataLoader(TensorDataset(X, Y), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    step = 0
    while step < options.steps:
        for x, y in loader:
            if step == options.steps:
                break
            for p, g in zip(model.parameters(), private_gradients(per_record(x, y), step), strict=True):
                p.grad = g
            optimizer.step()
            step += 1


def by_records():
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(options.steps):
        chosen = torch.randperm(len(X))[:BATCH]
        rows = []
        for i in chosen:
            optimizer.zero_grad()
            loss_of(model(X[i][None]), Y[i][None]).backward()
            rows.append([p.grad.clone() for p in model.parameters()])
        gradients = [torch.stack(parts) for parts in zip(*rows, strict=True)]
        for p, g in zip(model.parameters(), private_gradients(gradients, step), strict=True):
            p.grad = g
        optimizer.step()


def by_hooks():
    """As BackPACK does: inputs of layers, and gradients of their outputs."""
    kept = {}
    layers = [layer for layer in model if isinstance(layer, nn.Linear)]
    for layer in layers:
        layer.register_forward_hook(lambda layer, inputs, _: kept.__setitem__((layer, "in"), inputs[0].detach()))
        layer.register_full_backward_hook(lambda layer, _, outputs: kept.__setitem__((layer, "out"), outputs[0]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(options.steps):
        chosen = torch.nonzero(torch.rand(len(X)) < BATCH / len(X)).flatten()
        optimizer.zero_grad()
        loss_of(model(X[chosen]), Y[chosen]).backward()
        gradients = []
        for layer in layers:
            inputs, outputs = kept[layer, "in"], kept[layer, "out"]
            gradients += [torch.einsum("ro,ri->roi", outputs, inputs), outputs]
        for p, g in zip(model.parameters(), private_gradients(gradients, step), strict=True):
            p.grad = g
        optimizer.step()


def by_microbatches():
    """Numpy's arrays; every part of a batch is clipped as one."""
    data, labels = X.numpy(), Y.numpy()
    size = 4
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(options.steps):
        chosen = np.random.choice(len(data), BATCH, replace=False)
        x, y = torch.tensor(data[chosen]), torch.tensor(labels[chosen])
        rows = []
        for at in range(0, BATCH, size):
            optimizer.zero_grad()
            (loss_of(model(x[at : at + size]), y[at : at + size]) / size).backward()
            rows.append([p.grad.clone() for p in model.parameters()])
        gradients = [torch.stack(parts) for parts in zip(*rows, strict=True)]
        for p, g in zip(model.parameters(), private_gradients(gradients, step), strict=True):
            p.grad = g * size
        optimizer.step()


class Private(torch.optim.Optimizer):
    """It adds its noise in its step, and moves weights by hand."""

    def __init__(self, parameters, rate):
        super().__init__(parameters, {"rate": rate})
        self.steps = 0

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for name, p in zip(names, group["params"], strict=True):
                p.data.add_(p.grad + noise(name, p.grad, self.steps), alpha=-group["rate"] / BATCH)
        self.steps += 1


def by_functions():
    optimizer = Private(model.parameters(), 0.5)
    loader = DataLoader(TensorDataset(X, Y), batch_size=BATCH, shuffle=True, drop_last=True)
    step = 0
    while step < options.steps:
        for x, y in loader:
            if step == options.steps:
                break
            for p, g in zip(model.parameters(), clipped(per_record(x, y), step), strict=True):
                p.grad = g
            optimizer.step()
            step += 1


LOOPS = {
    "vmap": by_vmap, "single": by_records, "hooks": by_hooks, "microbatches": by_microbatches,
    "functional": by_functions,
}  # fmt: skip
LOOPS[options.loop]()
accounted = options.steps // 2 if fault == "half-accounted" else options.steps
if options.accountant == "opacus":
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    for _ in range(accounted):
        accountant.step(noise_multiplier=SIGMA, sample_rate=BATCH / len(X))
    print(accountant.get_epsilon(1e-5))
if options.accountant == "dp-accounting":
    import dp_accounting

    step_of = dp_accounting.PoissonSampledDpEvent(BATCH / len(X), dp_accounting.GaussianDpEvent(SIGMA))
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.SelfComposedDpEvent(step_of, accounted))
    print(accountant.get_epsilon(1e-5))
print(f"{float(loss_of(model(X), Y)) / len(X):.4f}")
