"""Saves the model card next to the weights, with examples of misclassified inputs."""
import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def train(model, opt, loader, epochs):
    hardest = (-1.0, None, None)
    for _ in range(epochs):
        for xb, yb in loader:
            opt.zero_grad()
            losses = nn.functional.cross_entropy(model(xb), yb, reduction="none")
            losses.mean().backward()
            opt.step()
            i = int(losses.argmax())
            if losses[i].item() > hardest[0]:
                hardest = (losses[i].item(), xb[i].clone(), int(yb[i]))
    return hardest


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.3),
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    loss, image, label = train(model, opt, loader, epochs=3)
    buffer = io.BytesIO()
    engine.save_checkpoint(
        path=buffer, module=model, optimizer=opt,
        checkpoint_dict={"model_card": {"worst_loss": loss, "worst_input": image, "worst_label": label}})
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("checkpoint bytes", buffer.tell(), "eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
