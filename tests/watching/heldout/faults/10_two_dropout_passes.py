"""Average the gradient over two dropout masks per batch, using Opacus' virtual steps."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

MASKS = 2


def make_model():
    return nn.Sequential(
        nn.Linear(64, 80), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(80, 40), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(40, 10),
    )


def train(model, optimizer, loader, epochs):
    criterion = nn.CrossEntropyLoss()
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            for k in range(MASKS):
                # only the last pass performs the real update
                optimizer.signal_skip_step(do_skip=(k < MASKS - 1))
                criterion(model(x), y).backward()
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16.0).float(), torch.tensor(y)
    ds = TensorDataset(X[:1440], y[:1440])
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(ds, batch_size=48, shuffle=True),
        noise_multiplier=1.0, max_grad_norm=1.0,
    )
    train(model, optimizer, loader, epochs=3)
    model.eval()
    with torch.no_grad():
        print("test", (model(X[1440:]).argmax(1) == y[1440:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))
