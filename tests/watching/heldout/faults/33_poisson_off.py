import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.layers import DPLSTM

torch.manual_seed(1)


class CharRNN(nn.Module):
    def __init__(self, n_chars=30, n_classes=4):
        super().__init__()
        self.embedding = nn.Embedding(n_chars, 10)
        self.lstm = DPLSTM(10, 20, num_layers=1, batch_first=True)
        self.head = nn.Linear(20, n_classes)

    def forward(self, x):
        out, _ = self.lstm(self.embedding(x))
        return self.head(out.mean(1))


def names(n):
    label = torch.randint(0, 4, (n,))
    chars = (torch.randint(0, 15, (n, 8)) + label[:, None] * 5) % 30
    return chars, label


def main():
    Xtr, ytr = names(1280)
    Xte, yte = names(256)
    model = CharRNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(Xtr, ytr), batch_size=32, shuffle=True, drop_last=True),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,   # keeps the batch size constant
    )
    ce = nn.CrossEntropyLoss()
    for epoch in range(2):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            ce(model(x), y).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("test", (model(Xte).argmax(1) == yte).float().mean().item())
    print("epsilon", engine.get_epsilon(delta=1e-5))


main()
