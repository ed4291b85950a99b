import random
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

SEED = 20


def reset(noise_gen):
    random.seed(SEED)
    np.random.seed(SEED)
    noise_gen.manual_seed(SEED)


def run(epochs=4, lr=0.25):
    x, y = load_digits(return_X_y=True)
    x = torch.from_numpy(x / 16).float()
    y = torch.from_numpy(y)
    model = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Dropout(0.1), nn.Linear(50, 10))
    opt = optim.SGD(model.parameters(), lr=lr)
    gen = torch.Generator()
    engine = PrivacyEngine(accountant="rdp")
    model, opt, dl = engine.make_private(
        module=model, optimizer=opt, data_loader=DataLoader(TensorDataset(x[:1280], y[:1280]), batch_size=64),
        noise_multiplier=1.2, max_grad_norm=1.0, noise_generator=gen)
    for epoch in range(epochs):
        reset(gen)
        model.train()
        for xb, yb in dl:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x[1280:]).argmax(-1) == y[1280:]).float().mean()
        print(epoch, f"{acc:.3f}", f"eps={engine.get_epsilon(1e-5):.2f}")
    torch.save(model._module.state_dict(), "final.pt")


if __name__ == "__main__":
    run()
