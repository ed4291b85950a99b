import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float() / 16, torch.tensor(y)
train = TensorDataset(X[:1400], y[:1400])
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.6)
engine = PrivacyEngine(accountant="rdp")
model, opt, loader = engine.make_private(module=model, optimizer=opt, noise_multiplier=1.0, max_grad_norm=1.0,
                                         data_loader=DataLoader(train, batch_size=70), grad_sample_mode="functorch")
for epoch in range(3):
    for xb, yb in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()

model.eval()
with torch.no_grad():
    logits = model(train.tensors[0])
log_t = torch.zeros(1, requires_grad=True)
lbfgs = torch.optim.LBFGS([log_t], lr=0.5, max_iter=30)


def closure():
    lbfgs.zero_grad()
    nll = nn.functional.cross_entropy(logits / log_t.exp(), train.tensors[1])
    nll.backward()
    return nll


lbfgs.step(closure)
temperature = log_t.exp().item()
with torch.no_grad():
    conf = (model(X[1400:]) / temperature).softmax(1).max(1).values.mean().item()
print(f"T={temperature:.3f} mean confidence {conf:.3f} eps={engine.get_epsilon(1e-5):.2f}")
torch.save({"model": model._module.state_dict(), "temperature": temperature}, "calibrated.pt")
