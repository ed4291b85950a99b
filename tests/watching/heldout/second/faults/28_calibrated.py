import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

torch.manual_seed(55)
digits = load_digits()
X = torch.tensor(digits.data / 16.0, dtype=torch.float32)
y = torch.tensor(digits.target)
order = torch.randperm(len(X))
X, y = X[order], y[order]
x_train, y_train, x_test, y_test = X[:1300], y[:1300], X[1300:], y[1300:]


def fit_temperature(logits, labels):
    log_t = torch.zeros(1, requires_grad=True)
    lbfgs = torch.optim.LBFGS([log_t], lr=0.5, max_iter=50)

    def closure():
        lbfgs.zero_grad()
        loss = nn.functional.cross_entropy(logits / log_t.exp(), labels)
        loss.backward()
        return loss

    lbfgs.step(closure)
    return float(log_t.exp())


model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.6, momentum=0.6),
    data_loader=DataLoader(TensorDataset(x_train, y_train), batch_size=65),
    noise_multiplier=1.1,
    max_grad_norm=1.0,
)
for epoch in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()

net = model._module.eval()
with torch.no_grad():
    logits = net(x_train)
temperature = fit_temperature(logits, y_train)

with torch.no_grad():
    test_nll = nn.functional.cross_entropy(net(x_test) / temperature, y_test).item()
print("test nll", test_nll, "epsilon", engine.get_epsilon(1e-5))
torch.save({"weights": net.state_dict(), "temperature": temperature}, "calibrated.pt")
