import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader

x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x).float() / 16, torch.tensor(y)
ds = TensorDataset(x[:1440], y[:1440])

model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.5)
engine = PrivacyEngine(accountant="rdp")
model, opt, loader = engine.make_private(module=model, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
                                         data_loader=DataLoader(ds, batch_size=48))
print("rate", loader.sample_rate)


def epoch(dl):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()


STAGES = [48, 96, 144]
for bs in STAGES:
    stage_loader = DPDataLoader.from_data_loader(DataLoader(ds, batch_size=bs))
    opt.expected_batch_size = bs
    for _ in range(1 if bs == 48 else 2):
        epoch(stage_loader)
    with torch.no_grad():
        acc = (model(x[1440:]).argmax(1) == y[1440:]).float().mean().item()
    print(bs, f"{acc:.3f}", engine.get_epsilon(1e-5))
torch.save(model.state_dict(), "grown.pt")
