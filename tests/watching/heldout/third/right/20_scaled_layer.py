import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.grad_sample import register_grad_sampler


class Scale(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * self.gain


@register_grad_sampler(Scale)
def scale_grad(layer, activations, backprops):
    return {layer.gain: activations[0] * backprops}


X, y = make_classification(2000, 15, n_informative=8, weights=[0.8], random_state=30)
X, y = torch.tensor(X).float(), torch.tensor(y)
COST = torch.tensor([1.0, 3.0])
net = nn.Sequential(Scale(15), nn.Linear(15, 24), nn.ReLU(), Scale(24), nn.Linear(24, 2))
opt = torch.optim.NAdam(net.parameters(), lr=6e-3)
engine = PrivacyEngine()
net, opt, dl = engine.make_private_with_epsilon(
    module=net, optimizer=opt, data_loader=DataLoader(TensorDataset(X[:1600], y[:1600]), batch_size=80),
    target_epsilon=3.0, target_delta=1e-5, epochs=4, max_grad_norm=1.0)
for epoch in range(3):
    for xb, yb in dl:
        opt.zero_grad()
        losses = nn.functional.cross_entropy(net(xb), yb, reduction="none")
        (losses * COST[yb]).mean().backward()
        opt.step()
with torch.no_grad():
    pred = net(X[1600:]).argmax(1)
print("recall", (pred[y[1600:] == 1] == 1).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "scaled.pt")
