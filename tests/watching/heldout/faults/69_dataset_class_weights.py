"""Weighted cross entropy; the weights come from sklearn's 'balanced' heuristic."""
import numpy as np
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

rng = np.random.default_rng(12)


def blob_data(n):
    y = rng.choice(3, size=n, p=[0.7, 0.22, 0.08])
    x = rng.normal(size=(n, 6)) + 1.5 * np.eye(3, 6)[y]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def main():
    (X, y), (Xt, yt) = blob_data(1800), blob_data(600)
    weights = compute_class_weight("balanced", classes=np.arange(3), y=y.numpy())
    criterion = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32), reduction="none")
    model = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 3))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.RMSprop(model.parameters(), lr=3e-3),
        data_loader=DataLoader(TensorDataset(X, y), batch_size=60), noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            criterion(model(xb), yb).mean().backward()
            opt.step()
    with torch.no_grad():
        pred = model(Xt).argmax(1)
    print("balanced acc", np.mean([(pred[yt == c] == c).float().mean().item() for c in range(3)]))
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
