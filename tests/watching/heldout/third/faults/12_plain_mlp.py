import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from sklearn.datasets import load_digits
from opacus import PrivacyEngine

X, y = load_digits(return_X_y=True)
full = TensorDataset(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y))
train_set, test_set = random_split(full, [1500, 297])
train_loader = DataLoader(train_set, batch_size=75, shuffle=True, drop_last=True)
test_loader = DataLoader(test_set, batch_size=297)

model = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

privacy_engine = PrivacyEngine()
model, optimizer, private_loader = privacy_engine.make_private_with_epsilon(
    module=model,
    optimizer=optimizer,
    data_loader=train_loader,
    target_epsilon=3.0,
    target_delta=1 / 2000,
    epochs=4,
    max_grad_norm=1.0,
)


def train_epoch():
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()


for epoch in range(4):
    train_epoch()
    model.eval()
    with torch.no_grad():
        for inputs, targets in test_loader:
            acc = (model(inputs).argmax(1) == targets).float().mean().item()
    print(f"[{epoch}] acc={acc:.3f} eps={privacy_engine.get_epsilon(1 / 2000):.2f}")
torch.save(model.state_dict(), "mlp.pt")
