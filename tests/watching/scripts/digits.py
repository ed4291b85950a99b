"""A training as Opacus' tutorials write it: a small network on digits. It knows nothing of Epsilometer."""

import argparse
import hashlib
import json

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--sigma", type=float, default=1.386)
parser.add_argument("--mode", default="hooks")
parser.add_argument("--optimizer", default="SGD")
parser.add_argument("--clipping", default="flat")
parser.add_argument("--physical", type=int, default=0)
parser.add_argument("--noise-generator", action="store_true")
parser.add_argument("--clip-norm", type=float, default=1.0)
parser.add_argument("--exit", type=int, default=0)
parser.add_argument("--noise-scale", type=float, default=1.0)
parser.add_argument("--hidden", type=int, nargs="+", default=[32], help="widths of layers")
parser.add_argument("--batch", type=int, default=180)
parser.add_argument("--only-matrices", action="store_true", help="biases get no noise")
options = parser.parse_args()

if options.noise_scale != 1.0 or options.only_matrices:  # somebody meant well
    import opacus.optimizers.optimizer as inner

    try:
        import opacus.optimizers.optimizer_fast_gradient_clipping as ghost
    except ImportError:  # before 1.5
        ghost = inner
    as_it_was = inner._generate_noise

    def faulty(std, reference, **others):
        scale = 0.0 if options.only_matrices and reference.shape in {(32,), (10,)} else options.noise_scale
        return as_it_was(std=std * scale, reference=reference, **others)

    inner._generate_noise = ghost._generate_noise = faulty

torch.manual_seed(options.seed)
np.random.seed(options.seed)
images, labels = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels))
loader = DataLoader(dataset, batch_size=options.batch)
layers = []
for inputs, width in zip([64, *options.hidden[:-1]], options.hidden, strict=True):
    layers += [nn.Linear(inputs, width), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(options.hidden[-1], 10))
optimizer = getattr(torch.optim, options.optimizer)(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()

settings = {"noise_multiplier": options.sigma, "max_grad_norm": options.clip_norm, "grad_sample_mode": options.mode}
if options.mode == "ghost":
    settings["criterion"] = criterion
if options.clipping == "per_layer":
    settings |= {"clipping": "per_layer", "max_grad_norm": [0.5] * 4}
if options.clipping == "adaptive":
    settings |= {
        "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 10.0,
    }  # fmt: skip
if options.noise_generator:
    settings["noise_generator"] = torch.Generator().manual_seed(options.seed)
privacy_engine = PrivacyEngine(accountant="rdp")
made = privacy_engine.make_private(module=model, optimizer=optimizer, data_loader=loader, **settings)
if len(made) == 4:
    model, optimizer, criterion, loader = made
else:
    model, optimizer, loader = made


def train(batches, wanted):
    taken = 0
    while taken < wanted:
        for x, y in batches:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            taken += not optimizer._is_last_step_skipped
            if taken == wanted:
                return


if options.physical:
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=options.physical, optimizer=optimizer) as new:
        train(new, options.steps)
else:
    train(loader, options.steps)

weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
print(json.dumps({
    "weights": hashlib.sha256(weights.numpy().tobytes()).hexdigest(),
    "sum": float(weights.double().sum()),
    "history": privacy_engine.accountant.history,
    "next": [torch.rand(1).item(), np.random.rand()],
}))  # fmt: skip
raise SystemExit(options.exit)
