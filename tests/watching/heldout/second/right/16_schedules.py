import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialGradClip, StepNoise


def main():
    torch.manual_seed(20)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    perm = torch.randperm(len(X))
    tr, te = perm[:1300], perm[1300:]
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.5)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X[tr], y[tr]), batch_size=65),
        noise_multiplier=1.4, max_grad_norm=1.5)
    clip = ExponentialGradClip(optimizer, gamma=0.7)
    noise = StepNoise(optimizer, step_size=2, gamma=0.8)
    for epoch in range(5):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
        clip.step()
        noise.step()
    model.eval()
    with torch.no_grad():
        acc = (model(X[te]).argmax(1) == y[te]).float().mean().item()
    print("acc", acc, "eps", engine.get_epsilon(1e-5))
    engine.save_checkpoint(path="schedules.ckpt", module=model, optimizer=optimizer,
                           noise_scheduler=noise, grad_clip_scheduler=clip)


main()
