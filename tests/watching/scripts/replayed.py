"""Trainings as people write them, right ones and faulty ones, for runs with neighbours. It knows nothing of
Epsilometer."""

import argparse
import io

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("what")
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--records", type=int, default=80)
parser.add_argument("--batch", type=int, default=20)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--unseeded", action="store_true")
options = parser.parse_args()
what = options.what

if not options.unseeded:
    torch.manual_seed(0)
    np.random.seed(0)
X = torch.tensor(np.random.default_rng(1).normal(size=(options.records, 16)), dtype=torch.float32)
Y = torch.tensor(np.random.default_rng(2).integers(0, 4, options.records))
X += nn.functional.one_hot(Y, 4).repeat(1, 4) * 2.0
SIGMA = 0.8


class OwnNorm(nn.Module):
    """Batch normalisation by hand."""

    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 0.1) if len(x) > 2 else x


class Frozen(nn.Module):
    """A public part that keeps statistics."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16, affine=False)

    def forward(self, x):
        with torch.no_grad():
            return self.norm(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        from opacus.layers import DPMultiheadAttention

        self.attention = DPMultiheadAttention(4, 2, dropout=0.1, batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        x = x.reshape(len(x), 4, 4)
        return self.out(self.attention(x, x, x)[0].reshape(len(x), 16))


def network():
    if what == "own-norm":
        return nn.Sequential(nn.Linear(16, 12), OwnNorm(), nn.ReLU(), nn.Linear(12, 4))
    if what == "attention":
        return Attention()
    dropout = [nn.Dropout(0.2)] if what in ("dropout", "mixed") else []
    return nn.Sequential(nn.Linear(16, 12), nn.ReLU(), *dropout, nn.Linear(12, 4))


model = network()
frozen = Frozen() if what == "frozen-norm" else nn.Identity()
if what == "frozen-norm":
    model = nn.Sequential(frozen, model)
kind = {"adamw": torch.optim.AdamW, "adaclip": torch.optim.SGD}.get(what, torch.optim.SGD)
optimizer = kind(model.parameters(), lr=0.1, **({"momentum": 0.9} if what in ("momentum", "right") else {}))
settings = {"noise_multiplier": SIGMA, "max_grad_norm": 1.0}
if what == "adaclip":
    settings |= {
        "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 4.0,
    }  # fmt: skip
if what == "per-layer":
    settings |= {"clipping": "per_layer", "max_grad_norm": [0.5] * 4}
dataset = TensorDataset(X, Y)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(dataset, batch_size=options.batch, num_workers=options.workers),
    **settings,
)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95) if what == "schedule" else None
weights = None
if what == "class-weights":
    weights = 1.0 / torch.tensor([float(y.sum()) for y in nn.functional.one_hot(dataset.tensors[1], 4).T])
    weights = weights * dataset.tensors[0].abs().mean()
clipped = optimizer.clip_and_accumulate


def unclipped():
    for p in optimizer.params:
        p.summed_grad = p.grad_sample.sum(0)
        p.grad_sample._processed = True


taken, losses, best = 0, [], None
average = [p.detach().clone() for p in model.parameters()]
velocity = [torch.zeros_like(p) for p in model.parameters()]

while taken < options.steps:
    for x, y in loader:
        optimizer.zero_grad()
        if what == "candidates":  # the harder one of two batches
            with torch.no_grad():
                x, y = max(
                    [(x, y), next(iter(loader))], key=lambda b: float(nn.functional.cross_entropy(model(b[0]), b[1]))
                )
        if what == "standardised" and len(x) > 2:
            x = (x - x.mean(0)) / (x.std(0) + 0.1)
        if what == "augmentation":
            x = x + 0.1 * torch.randn_like(x)
        if what == "augmented":  # three copies of a record are three records
            x, y = torch.cat([x, x.flip(1), x * 0.9]), y.repeat(3)
        each = nn.functional.cross_entropy(model(x), y, weight=weights, reduction="none")
        loss = each.mean()
        if what == "balanced":  # by the labels of its batch
            loss = (each / torch.bincount(y, minlength=4)[y]).sum() / 40
        if what == "hard-examples" and len(each) > 4:
            top = each.topk(len(each) // 2).indices
            loss = each[top].sum() / len(each)
        loss.backward()
        if what == "skips" and loss.item() > 3.0:
            continue
        if what == "worst-record":
            torch.save({"worst": x[each.argmax()]}, io.BytesIO())
        if what == "last-unclipped":
            optimizer.clip_and_accumulate = unclipped if taken % 4 in (2, 3) else clipped
        if what == "momentum-raw":
            samples = [p.grad_sample.mean(0) for p in model.parameters()]
        optimizer.step()
        with torch.no_grad():
            if what == "momentum-raw":
                for p, v, g in zip(model.parameters(), velocity, samples, strict=True):
                    v.mul_(0.9).add_(g)
                    p.sub_(0.01 * v)
            if what == "regulariser":
                for p in model.parameters():
                    p.sub_(0.001 * x.abs().mean() * p)
            if what == "averaging":
                for p, a in zip(model.parameters(), average, strict=True):
                    a.mul_(0.9).add_(p * float(each.mean()) * 0.1)
                    p.copy_(0.9 * p + 0.1 * a)
        if what == "private-rate":
            losses.append(loss.item())
            optimizer.param_groups[0]["lr"] = 0.1 * min(1.0, losses[-1] / 5)
        if what == "actual-batch":
            optimizer.expected_batch_size = max(1, len(x))
        if scheduler is not None:
            scheduler.step()
        taken += 1
        if what == "best-state":
            with torch.no_grad():
                right = float((model(X).argmax(1) == Y).float().mean())
            if best is None or right > best[0]:
                best = right, {name: value.clone() for name, value in model.state_dict().items()}
        if what == "early-exit" and sum(float(p.detach().norm()) for p in model.parameters()) > 3.95:
            options.steps = taken
        if what == "private-stop" and loss.item() > 3.0:
            options.steps = taken
        if taken >= options.steps:
            break
if best is not None:
    model.load_state_dict(best[1])
if what == "calibrated":

    class Calibrated(nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.log_t = model, nn.Parameter(torch.zeros(()))

        def forward(self, x):
            return self.model(x) / self.log_t.exp()

    calibrated = Calibrated()
    with torch.no_grad():
        calibrated.log_t += float(nn.functional.cross_entropy(calibrated(X), Y))
if what == "averaged-statistics":
    swa = torch.optim.swa_utils.AveragedModel(nn.Sequential(network(), nn.BatchNorm1d(4, affine=False)))
    swa.module[0].load_state_dict(model._module.state_dict())
    torch.optim.swa_utils.update_bn([(X, Y)], swa)
if what == "own-baseline":  # compared, and not released
    baseline = network()
    plain = torch.optim.SGD(baseline.parameters(), lr=0.1)
    nn.functional.cross_entropy(baseline(X), Y).backward()
    plain.step()
    baseline(X)
print(taken, float(sum(p.sum() for p in model.parameters())))
