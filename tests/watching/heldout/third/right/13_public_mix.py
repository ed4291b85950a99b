import copy
import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).float() / 16, torch.tensor(y)
x_pub, y_pub = X[:150], y[:150]
private = TensorDataset(X[150:1500], y[150:1500])
x_test, y_test = X[1500:], y[1500:]

net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
twin = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
engine = PrivacyEngine(accountant="rdp")
net, opt, dl = engine.make_private(module=net, optimizer=opt, noise_multiplier=1.3, max_grad_norm=1.0,
                                   data_loader=DataLoader(private, batch_size=54))
for epoch in range(2):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        twin.load_state_dict(net._module.state_dict())
        pick = torch.randint(len(x_pub), (32,))
        extra = torch.autograd.grad(nn.functional.cross_entropy(twin(x_pub[pick]), y_pub[pick]), list(twin.parameters()))
        if opt.pre_step():
            for p, g in zip(opt.params, extra):
                p.grad.mul_(0.7).add_(g, alpha=0.3)
            opt.original_optimizer.step()
with torch.no_grad():
    print("acc", (net(x_test).argmax(1) == y_test).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "mix.pt")
