"""First layer initialised with the principal components of the training images, then DP-Adam."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


def pca_init(linear, data):
    mean = data.mean(0)
    _, _, components = torch.linalg.svd(data - mean, full_matrices=False)
    with torch.no_grad():
        linear.weight.copy_(components[: linear.out_features])
        linear.bias.copy_(-(linear.weight @ mean))


def main():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    train = TensorDataset(X[:1500], y[:1500])
    model = nn.Sequential(nn.Linear(64, 24), nn.Tanh(), nn.Linear(24, 10))
    pca_init(model[0], train.tensors[0])
    engine = PrivacyEngine()
    model, opt, criterion, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=5e-3),
        criterion=nn.CrossEntropyLoss(), data_loader=DataLoader(train, batch_size=50),
        noise_multiplier=1.1, max_grad_norm=1.0, grad_sample_mode="ghost")
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            criterion(model(xb), yb).backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
