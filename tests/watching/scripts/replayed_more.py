"""More trainings for runs with neighbours, each on its own: all are right, and some cannot be followed to their end."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

parser = argparse.ArgumentParser()
parser.add_argument("what")
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--data")
options = parser.parse_args()
what = options.what

torch.manual_seed(0)
np.random.seed(0)
if options.data is None:
    X = torch.tensor(np.random.default_rng(1).normal(size=(80, 16)), dtype=torch.float32)
    Y = torch.tensor(np.random.default_rng(2).integers(0, 4, 80))
    X += nn.functional.one_hot(Y, 4).repeat(1, 4) * 2.0


def network():
    return nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4))


def private(model, data, **settings):
    """What make_private gives, for a loss that it may give back."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"noise_multiplier": 0.8, "max_grad_norm": 1.0, **settings}
    loader = DataLoader(data, batch_size=20, collate_fn=given.pop("collate", None))
    made = PrivacyEngine(accountant="rdp").make_private(module=model, optimizer=optimizer, data_loader=loader, **given)
    return made if len(made) == 4 else (made[0], made[1], nn.CrossEntropyLoss(), made[2])


def train(model, optimizer, criterion, loader, steps=options.steps, autocast=False, every=1, after=lambda: False):
    taken = seen = 0
    while taken < steps:
        for x, y in loader:
            seen += 1
            if seen % every == 1 or every == 1:
                optimizer.zero_grad()
            with torch.autocast("cpu", enabled=autocast):
                loss = criterion(model(x), y)
            loss.backward()
            if seen % every:
                continue
            optimizer.step()
            taken += not optimizer._is_last_step_skipped
            if taken >= steps or after():
                return


def small():
    return private(network(), TensorDataset(X, Y))


class Texts(Dataset):
    """Of unequal length."""

    def __len__(self):
        return 80

    def __getitem__(self, at):
        generator = torch.Generator().manual_seed(at)
        length = int(torch.randint(3, 60, (), generator=generator))
        return torch.randint(1, 30, (length,), generator=generator), int(Y[at])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.drop, self.out = nn.Embedding(30, 8, padding_idx=0), nn.Dropout(0.2), nn.Linear(8, 4)

    def forward(self, tokens):
        mask = (tokens > 0).unsqueeze(-1)
        return self.out((self.drop(self.embed(tokens)) * mask).sum(1) / mask.sum(1).clamp(min=1))


def padded(records):
    texts, labels = zip(*records, strict=True)
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), torch.tensor(labels)


if what == "ghost":
    criterion = nn.CrossEntropyLoss()
    train(*private(network(), TensorDataset(X, Y), grad_sample_mode="ghost", criterion=criterion))
if what == "functorch":
    train(*private(network(), TensorDataset(X, Y), grad_sample_mode="functorch"))
if what == "manager":
    model, optimizer, criterion, loader = small()
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as split:
        train(model, optimizer, criterion, split)
if what == "accumulation":
    train(*private(network(), TensorDataset(X, Y), poisson_sampling=False), every=2)
if what == "mixed":
    train(*small(), autocast=True)
if what == "split":
    kept, _ = random_split(TensorDataset(X, Y), [60, 20])
    train(*private(network(), kept))
if what == "perturbed":  # as additions in another order on a GPU
    model, optimizer, criterion, loader = small()
    clip = optimizer.clip_and_accumulate

    def shaking():
        clip()
        for p in optimizer.params:
            p.summed_grad *= 1 + 1e-6 * (time.perf_counter_ns() % 1000) / 1000

    optimizer.clip_and_accumulate = shaking
    train(model, optimizer, criterion, loader)
if what == "pretrained":
    model = network()
    own = torch.optim.Adam(model.parameters())
    for _ in range(20):
        own.zero_grad()
        public = torch.randn(32, 16)
        nn.functional.cross_entropy(model(public), (public[:, :4]).argmax(1)).backward()
        own.step()
    train(*private(model, TensorDataset(X, Y)))
if what == "normalised":  # with noise, and paid for
    mean = X.clamp(-3, 3).mean(0) + torch.randn(16) * 0.3
    train(*private(network(), TensorDataset(X - mean, Y)))
if what in ("read", "read-normalised", "read-weights"):
    table = np.loadtxt(options.data, delimiter=",")
    x, y = torch.tensor(table[:, :16], dtype=torch.float32), torch.tensor(table[:, 16].astype(int))
    if what == "read-normalised":  # by what all records are
        x = (x - x.mean(0)) / x.std(0)
    model, optimizer, criterion, loader = private(network(), TensorDataset(x, y))
    if what == "read-weights":
        criterion = nn.CrossEntropyLoss(weight=1.0 / torch.bincount(y, minlength=4).clamp(min=1) * 20)
    train(model, optimizer, criterion, loader)
if what == "read-public":  # some of its rows are public, and first weights come from those
    table = np.loadtxt(options.data, delimiter=",")
    x, y = torch.tensor(table[:, :16], dtype=torch.float32), torch.tensor(table[:, 16].astype(int))
    model = network()
    with torch.no_grad():
        model[0].bias.copy_(x[10:30].mean() * torch.ones(12))
    train(*private(model, TensorDataset(x[30:], y[30:])))
if what == "resumed":
    file = Path("checkpoint.pt")
    model, optimizer, criterion, loader = small()
    if file.exists():
        kept = torch.load(file)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
    train(model, optimizer, criterion, loader)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
if what == "raw-checkpoint":  # a fault: an average of records is kept beside the model
    model, optimizer, criterion, loader = small()
    train(model, optimizer, criterion, loader)
    torch.save({"model": model.state_dict(), "mean": loader.dataset.tensors[0].mean(0)}, "checkpoint.pt")
if what == "gan":
    made, noise = nn.Sequential(nn.Linear(4, 16)), 4
    own = torch.optim.Adam(made.parameters())
    critic = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))
    critic, optimizer, _, loader = private(critic, TensorDataset(X, Y))
    taken = 0
    while taken < options.steps:
        for x, _ in loader:
            optimizer.zero_grad()
            nn.functional.softplus(-critic(x)).mean().backward()
            optimizer.step()
            own.zero_grad()
            critic.disable_hooks()
            nn.functional.softplus(-critic._module(made(torch.randn(20, noise)))).mean().backward()
            own.step()
            critic.enable_hooks()
            taken += 1
            if taken >= options.steps:
                break
if what == "texts":
    train(*private(Reader(), Texts(), collate=padded))
if what == "engines":
    train(*small(), steps=5)
    train(*small(), steps=5)
if what == "noisy-rate":  # by a noisy loss, which is paid for
    model, optimizer, criterion, loader = small()
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            noisy = min(loss.item(), 5.0) + float(torch.randn(()))
            optimizer.param_groups[0]["lr"] = 0.02 * max(1.0, noisy)
            optimizer.step()
if what in ("noisy-stop", "declared-stop"):  # by a noisy accuracy, which is paid for
    import epsilometer.opacus

    model, optimizer, criterion, loader = small()

    def good():
        with torch.no_grad():
            right = float((model(X).argmax(1) == Y).float().mean()) + float(torch.randn(())) * 0.05
        return (epsilometer.opacus.release(right) if what == "declared-stop" else right) > 0.9

    train(model, optimizer, criterion, loader, after=good)
