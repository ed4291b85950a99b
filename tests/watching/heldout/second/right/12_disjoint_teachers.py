import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

SHARDS, DELTA = 3, 1e-4


def fit_shard(x, y, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=40),
        noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    return model._module.eval(), engine.get_epsilon(DELTA)


def main():
    d = load_digits()
    X = torch.tensor(d.data / 16, dtype=torch.float32)
    y = torch.tensor(d.target)
    perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(1))
    train, test = perm[:1350], perm[1350:]
    shard_of = torch.randint(0, SHARDS, (len(train),), generator=torch.Generator().manual_seed(2))
    nets, eps = [], []
    for s in range(SHARDS):
        rows = train[shard_of == s]
        net, e = fit_shard(X[rows], y[rows], seed=s)
        nets.append(net)
        eps.append(e)
    with torch.no_grad():
        vote = sum(n(X[test]).softmax(1) for n in nets)
    print("accuracy", (vote.argmax(1) == y[test]).float().mean().item())
    print("epsilon per record", max(eps))
    torch.save([n.state_dict() for n in nets], "teachers.pt")


main()
