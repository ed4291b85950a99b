import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class RelativeAttention(nn.Module):
    """One layer holding raw parameters, so there is no built-in sampler for it."""

    def __init__(self, d, length):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, d, d) / d ** 0.5)
        self.bias = nn.Parameter(torch.zeros(length, length))

    def forward(self, x):
        q, k, v = x @ self.w[0], x @ self.w[1], x @ self.w[2]
        scores = q @ k.transpose(-1, -2) / x.shape[-1] ** 0.5 + self.bias
        return x + scores.softmax(-1) @ v


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4, 16)
        self.att = RelativeAttention(16, 10)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        return self.out(self.att(torch.tanh(self.inp(x))).mean(1))


def sequences(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, 4, generator=g)
    y = ((x[:, :-1, 0] * x[:, 1:, 0]).sum(1) > 0).long()
    return x, y


torch.manual_seed(0)
x, y = sequences(1000, 1)
xt, yt = sequences(300, 2)
model = Model()
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model, optimizer=torch.optim.Adam(model.parameters(), lr=1e-2),
    data_loader=DataLoader(TensorDataset(x, y), batch_size=50), grad_sample_mode="functorch",
    epochs=4, target_epsilon=6.0, target_delta=1e-5, max_grad_norm=1.0)
for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("acc", (model(xt).argmax(1) == yt).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "attention.pt")
