"""A training that two processes take the steps of, as Opacus' tutorials write it; and its faults. It knows nothing of
Epsilometer."""

import argparse
import os

import torch
import torch.multiprocessing as processes
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="hooks")
parser.add_argument("--fault", default="")
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--weights", action="store_true")
parser.add_argument("--sigma", type=float, default=1.0)
RECORDS, BATCH = 256, 32


def half(optimizer):
    right = optimizer.add_noise

    def add_noise():
        optimizer.noise_multiplier /= 2
        right()
        optimizer.noise_multiplier *= 2

    optimizer.add_noise = add_noise


def none(optimizer):
    def add_noise():
        for p in optimizer.params:
            p.grad = p.summed_grad.view_as(p)

    optimizer.add_noise = add_noise


def every_rank(optimizer):
    optimizer.rank = 0


def averaged_noise(optimizer):
    """Every rank adds its share of what would be right if it were added up in another way."""
    optimizer.rank = 0
    right = optimizer.add_noise

    def add_noise():
        optimizer.noise_multiplier /= optimizer.world_size
        right()
        optimizer.noise_multiplier *= optimizer.world_size

    optimizer.add_noise = add_noise


def averaged_twice(optimizer):
    right = optimizer.reduce_gradients

    def reduce_gradients():
        right()
        for p in optimizer.params:
            p.grad /= optimizer.world_size

    optimizer.reduce_gradients = reduce_gradients


def unaccounted(optimizer):
    if distributed.get_rank() == 1:
        optimizer.attach_step_hook(lambda _: None)


FAULTS = {
    "half": half, "none": none, "every": every_rank, "shares": averaged_noise, "twice": averaged_twice,
    "unaccounted": unaccounted,
}  # fmt: skip


def work(rank, options, place):
    distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
    own = torch.Generator().manual_seed(3)
    data = TensorDataset(torch.randn(RECORDS, 20, generator=own), torch.randint(0, 2, (RECORDS,), generator=own))
    torch.manual_seed(options.seed)
    network = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
    torch.manual_seed(options.seed if options.fault in ("same-records", "same-coins") else 1000 * options.seed + rank)
    if options.mode == "fsdp":
        from opacus.utils.fsdp_utils import FSDP2Wrapper

        model = FSDP2Wrapper(network)
    else:
        model = DifferentiallyPrivateDistributedDataParallel(network)
    criterion = nn.CrossEntropyLoss()
    engine = PrivacyEngine(accountant="rdp")
    given = {"noise_multiplier": options.sigma, "max_grad_norm": 1.0}
    if options.mode == "ghost":
        given |= {"grad_sample_mode": "ghost", "criterion": criterion}
    if options.mode == "fsdp":
        given |= {"grad_sample_mode": "ghost_fsdp", "criterion": criterion}
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, BATCH),
        **given,
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if len(made) == 4 else criterion
    if options.fault == "same-records":
        from opacus.data_loader import DPDataLoader

        loader = DPDataLoader.from_data_loader(DataLoader(data, BATCH))
    FAULTS.get(options.fault, lambda _: None)(optimizer)
    taken = 0
    while taken < options.steps:
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            taken += 1
            if taken == options.steps:
                break
    if options.weights:
        for turn in range(2):  # in order
            distributed.barrier()
            if turn == rank:
                print("weights", rank, *(float(p.double().sum()) for p in model.parameters()), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    chosen = parser.parse_args()
    place = os.path.abspath(f"meeting-{os.getpid()}")
    processes.spawn(work, (chosen, place), nprocs=2)
    print("done")
