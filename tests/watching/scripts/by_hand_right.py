"""Right trainings by hand that look unlike others: nobody may accuse them. It knows nothing of Epsilometer."""

import argparse
import math

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.func import functional_call, grad, vmap

parser = argparse.ArgumentParser()
parser.add_argument("what")
parser.add_argument("--steps", type=int, default=16)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
what, C, SIGMA, BATCH = options.what, 1.0, 1.0, 24

if what != "unseeded":
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
digits = load_digits()
X = torch.tensor(digits.data[:300] / 16, dtype=torch.float32)
Y = torch.tensor(digits.target[:300])
X_PUBLIC, Y_PUBLIC = torch.tensor(digits.data[300:600] / 16, dtype=torch.float32), torch.tensor(digits.target[300:600])
cross_entropy = nn.CrossEntropyLoss()
generator = np.random.default_rng(options.seed)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.inward, self.outward = nn.Linear(64, 8), nn.Linear(4, 64)

    def forward(self, x):
        mean, log = self.inward(x).chunk(2, dim=-1)
        return self.outward(mean + torch.randn_like(mean) * (log / 2).exp()), mean, log


def network():
    if what == "vae":
        return Vae()
    if what == "diffusion":
        return nn.Sequential(nn.Linear(65, 24), nn.Tanh(), nn.Linear(24, 64))
    dropout = [nn.Dropout(0.2)] if what == "dropout" else []
    return nn.Sequential(nn.Linear(64, 16), nn.Tanh(), *dropout, nn.Linear(16, 10))


model = network()


def loss_of(x, y):
    """Of one record."""
    if what == "vae":
        found, mean, log = model(x)
        return ((found - x) ** 2).sum() + 0.5 * (mean**2 + log.exp() - log - 1).sum()
    if what == "diffusion":
        time, noise = torch.rand(len(x), 1), torch.randn_like(x)
        return ((model(torch.cat([(1 - time) * x + time * noise, time], dim=1)) - noise) ** 2).sum()
    return cross_entropy(model(x), y)


def box_muller(shape):
    """Of uniform numbers."""
    return (-2 * torch.log(1 - torch.rand(shape))).sqrt() * torch.cos(2 * math.pi * torch.rand(shape))


def noise(shape):
    if what == "box-muller":
        return box_muller(shape)
    if what == "default-rng":
        return torch.tensor(generator.standard_normal(shape), dtype=torch.float32)
    return torch.randn(shape)


def clipped(gradients):
    norm = torch.sqrt(sum(g.square().sum() for g in gradients))
    factor = min(1.0, C / (float(norm) + 1e-6))
    return [g * factor for g in gradients]


def sums(chosen, per_record=0.0, every=0):
    """Of clipped gradients, one backward pass a record; with noise of every one, or after so many."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    for at, i in enumerate(chosen, 1):
        model.zero_grad()
        loss_of(X[i][None], Y[i][None]).backward()
        for t, g in zip(total, clipped([p.grad for p in model.parameters()]), strict=True):
            t += g
            if per_record:
                t += per_record * torch.randn_like(t)
            if every and at % every == 0:
                t += SIGMA * C * math.sqrt(every / BATCH) * torch.randn_like(t)
    return total


def sample():
    return torch.randperm(len(X))[:BATCH]


def plain():
    """Noise of other kinds, or at other places."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(options.steps):
        if what == "early-noise":
            first = [torch.randn_like(p) for p in model.parameters()]
        if what == "public" and step % 3 == 1:
            chosen = torch.randint(len(X_PUBLIC), (BATCH,))
            optimizer.zero_grad()
            cross_entropy(model(X_PUBLIC[chosen]), Y_PUBLIC[chosen]).backward()
            optimizer.step()
            continue
        per_record = SIGMA * C / math.sqrt(BATCH) if what == "per-record" else 0.0
        total = sums(sample(), per_record, every=6 if what == "per-microbatch" else 0)
        optimizer.zero_grad()
        for at, (p, t) in enumerate(zip(model.parameters(), total, strict=True)):
            if what not in ("per-record", "per-microbatch"):
                t += SIGMA * C * (first[at] if what == "early-noise" else noise(t.shape))
            p.grad = t / BATCH
        optimizer.step()


def backward_hooks():
    """A record clips its gradient and adds its share of the noise as it goes into the sum."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    share = SIGMA * C / math.sqrt(BATCH)
    each = C / math.sqrt(len(list(model.parameters())))

    def noisy(g):
        return g * min(1.0, each / (float(g.norm()) + 1e-6)) + share * torch.randn_like(g)

    for p in model.parameters():
        p.register_hook(noisy)
    for _ in range(options.steps):
        optimizer.zero_grad()
        for i in sample():
            loss_of(X[i][None], Y[i][None]).backward()
        for p in model.parameters():
            p.grad /= BATCH
        optimizer.step()


def ftrl():
    """Noise of a binary tree: every step has what its prefix has more than the one before."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    nodes, before = {}, [torch.zeros_like(p) for p in model.parameters()]
    for step in range(1, options.steps + 1):
        now, left, size = [torch.zeros_like(p) for p in model.parameters()], 0, 1 << step.bit_length()
        while size:
            if step & size:
                key = left, size
                nodes.setdefault(key, [SIGMA * C * torch.randn_like(p) for p in model.parameters()])
                for n, one in zip(now, nodes[key], strict=True):
                    n += one
                left += size
            size >>= 1
        for p, t, n, b in zip(model.parameters(), sums(sample()), now, before, strict=True):
            p.grad = (t + n - b) / BATCH
        before = now
        optimizer.step()


def gan():
    """The critic sees records, and has noise; the generator sees none."""
    critic = nn.Sequential(nn.Linear(64, 16), nn.LeakyReLU(), nn.Linear(16, 1))
    maker = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 64))
    for_critic = torch.optim.Adam(critic.parameters(), lr=0.002)
    for_maker = torch.optim.Adam(maker.parameters(), lr=0.002)

    def loss(parameters, one, made):
        real, fake = (functional_call(critic, parameters, (x[None],)) for x in (one, made))
        return nn.functional.softplus(-real).sum() + nn.functional.softplus(fake).sum()

    for _ in range(options.steps):
        chosen = torch.randint(len(X), (BATCH,))
        made = maker(torch.randn(BATCH, 8)).detach()
        parameters = {name: p.detach() for name, p in critic.named_parameters()}
        found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, X[chosen], made)
        norms = sum(g.reshape(BATCH, -1).square().sum(1) for g in found.values()).sqrt()
        factors = (C / (norms + 1e-6)).clamp(max=1.0)
        for name, p in critic.named_parameters():
            total = torch.einsum("r,r...->...", factors, found[name])
            p.grad = (total + SIGMA * C * torch.randn_like(total)) / BATCH
        for_critic.step()
        for_maker.zero_grad()
        nn.functional.softplus(-critic(maker(torch.randn(BATCH, 8)))).mean().backward()
        for_maker.step()


def pretrained():
    """Public steps by an optimizer of their own, and then private ones."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(options.steps):
        chosen = torch.randperm(len(X_PUBLIC))[:BATCH]
        optimizer.zero_grad()
        cross_entropy(model(X_PUBLIC[chosen]), Y_PUBLIC[chosen]).backward()
        optimizer.step()
    plain()


{"backward-hooks": backward_hooks, "ftrl": ftrl, "gan": gan, "pretrained": pretrained}.get(what, plain)()
