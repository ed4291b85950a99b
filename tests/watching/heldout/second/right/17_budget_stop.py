import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine
from opacus.accountants import RDPAccountant

BUDGET, DELTA = 3.0, 1e-5


def next_epsilon(engine, sigma, rate):
    ahead = RDPAccountant()
    ahead.history = copy.deepcopy(engine.accountant.history)
    ahead.step(noise_multiplier=sigma, sample_rate=rate)
    return ahead.get_epsilon(DELTA)


def main():
    torch.manual_seed(61)
    X, y = make_classification(1400, 18, n_informative=9, n_classes=3, random_state=13)
    X, y = torch.tensor(X / 4, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(18, 32), nn.Mish(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[:1000], y[:1000]), batch_size=40),
        noise_multiplier=0.95, max_grad_norm=1.0)
    rate, steps, running = loader.sample_rate, 0, True
    while running:
        for xb, yb in loader:
            if steps >= 110 or next_epsilon(engine, optimizer.noise_multiplier, rate) > BUDGET:
                running = False
                break
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
            steps += 1
    with torch.no_grad():
        acc = (model(X[1000:]).argmax(1) == y[1000:]).float().mean().item()
    print(f"{steps} steps, acc {acc:.3f}, eps {engine.get_epsilon(DELTA):.3f} <= {BUDGET}")
    torch.save(model._module.state_dict(), "budget.pt")


main()
