import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager

x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9)
engine = PrivacyEngine(accountant="rdp")
model, opt, crit, loader = engine.make_private(
    module=model, optimizer=opt, criterion=nn.CrossEntropyLoss(), noise_multiplier=1.1, max_grad_norm=1.0,
    data_loader=DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=100), grad_sample_mode="ghost")
for epoch in range(4):
    model.train()
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=40, optimizer=opt) as chunks:
        for xb, yb in chunks:
            opt.zero_grad()
            crit(model(xb), yb).backward()
            opt.step()
model.eval()
with torch.no_grad():
    print("acc", (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "ghost_chunks.pt")
