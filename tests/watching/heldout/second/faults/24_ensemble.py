import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def build(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def train_member(width, seed, dataset, delta):
    torch.manual_seed(seed)
    model = build(width)
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=DataLoader(dataset, batch_size=72),
        target_epsilon=4.0, target_delta=delta, epochs=2, max_grad_norm=1.0)
    for _ in range(2):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
    model.eval()
    return model._module, engine.get_epsilon(delta)


def main():
    digits = load_digits()
    X = torch.tensor(digits.data / 16, dtype=torch.float32)
    y = torch.tensor(digits.target)
    perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(3))
    train = TensorDataset(X[perm[:1440]], y[perm[:1440]])
    test_x, test_y = X[perm[1440:]], y[perm[1440:]]

    members, spent = [], []
    for seed, width in enumerate((32, 48, 64)):
        net, eps = train_member(width, seed, train, 1e-5)
        members.append(net)
        spent.append(eps)
    with torch.no_grad():
        vote = sum(m(test_x).softmax(1) for m in members)
    print("ensemble accuracy", (vote.argmax(1) == test_y).float().mean().item())
    print("epsilon", max(spent))
    torch.save([m.state_dict() for m in members], "ensemble.pt")


main()
