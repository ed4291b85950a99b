"""Select the most variable pixels of the training set, then train a private linear model."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--sigma", type=float, default=1.0)
    args = parser.parse_args()

    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    keep = X[:1500].var(0).topk(args.features).indices
    X = X[:, keep]
    model = nn.Linear(args.features, 10)
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.6, momentum=0.5),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=args.sigma, max_grad_norm=1.0, grad_sample_mode="functorch")
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))
    return {"pixels": keep, "state": model.state_dict()}


if __name__ == "__main__":
    main()
