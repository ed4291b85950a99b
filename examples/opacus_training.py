"""An ordinary Opacus training, q = 1/4, 40 steps."""

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset


def train(data, seed, noise=2.0):
    torch.manual_seed(seed)
    loader = DataLoader(TensorDataset(torch.as_tensor(data.x), torch.as_tensor(data.y)), batch_size=450)
    model = torch.nn.Linear(64, 2)
    model.weight.data.zero_()
    optimizer, engine = torch.optim.SGD(model.parameters(), lr=1.0), PrivacyEngine()
    private = {"module": model, "optimizer": optimizer, "data_loader": loader}
    model, optimizer, loader = engine.make_private(**private, noise_multiplier=noise, max_grad_norm=1.0)
    for x, y in (batch for _ in range(10) for batch in loader):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model
