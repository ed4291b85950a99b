import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from opacus import PrivacyEngine


def get_data():
    X, y = make_classification(n_samples=1300, n_features=24, n_informative=12,
                               n_classes=3, random_state=0)
    X = torch.tensor(X, dtype=torch.float32) / 4
    y = torch.tensor(y)
    return (X[:1000], y[:1000]), (X[1000:], y[1000:])


@torch.no_grad()
def mc_accuracy(model, x, y, draws=8):
    torch.manual_seed(1234)
    model.train()
    probs = sum(model(x).softmax(1) for _ in range(draws)) / draws
    return (probs.argmax(1) == y).float().mean().item()


def train(epochs=5, batch_size=50):
    (x, y), (xt, yt) = get_data()
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.6)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader, epochs=epochs,
        target_epsilon=4.0, target_delta=1e-5, max_grad_norm=1.0)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        print("epoch", epoch, "mc accuracy", round(mc_accuracy(model, xt, yt), 3))
    print("epsilon", round(engine.get_epsilon(1e-5), 2))
    return model


if __name__ == "__main__":
    net = train()
    torch.save(net._module.state_dict(), "mc_dropout.pt")
