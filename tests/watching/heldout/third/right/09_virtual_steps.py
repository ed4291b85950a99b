import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

CHUNK = 32
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float().view(-1, 1, 8, 8) / 16, torch.tensor(y)
cnn = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(128, 10))
opt = torch.optim.SGD(cnn.parameters(), lr=0.3, momentum=0.9, nesterov=True)
engine = PrivacyEngine(accountant="rdp")
cnn, opt, loader = engine.make_private(module=cnn, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
                                       data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=100))
for epoch in range(3):
    cnn.train()
    for xb, yb in loader:
        parts = list(zip(xb.split(CHUNK), yb.split(CHUNK)))
        for k, (xc, yc) in enumerate(parts):
            opt.signal_skip_step(do_skip=k < len(parts) - 1)
            opt.zero_grad()
            nn.functional.cross_entropy(cnn(xc), yc).backward()
            opt.step()
cnn.eval()
with torch.no_grad():
    acc = (cnn(X[1500:]).argmax(1) == y[1500:]).float().mean().item()
print("acc", acc, "steps", sum(h[2] for h in engine.accountant.history), "eps", engine.get_epsilon(1e-5))
torch.save(cnn._module.state_dict(), "virtual.pt")
