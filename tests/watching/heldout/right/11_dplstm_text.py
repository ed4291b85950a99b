"""Character-level classifier with opacus.layers.DPLSTM."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from opacus import PrivacyEngine
from opacus.layers import DPLSTM


class SyntheticNames(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 3, (n,), generator=g)
        start = torch.randint(0, 12, (n, 9), generator=g)
        self.tokens = (start + 7 * self.labels[:, None]) % 26

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.tokens[i], self.labels[i]


class CharNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(26, 12)
        self.lstm = DPLSTM(12, 24, batch_first=True)
        self.out = nn.Linear(24, 3)

    def forward(self, x):
        h, _ = self.lstm(self.embedding(x))
        return self.out(h[:, -1, :])


def main():
    train, test = SyntheticNames(1200, 1), SyntheticNames(300, 2)
    model = CharNN()
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=1e-2),
        data_loader=DataLoader(train, batch_size=40), noise_multiplier=0.9, max_grad_norm=1.0)
    criterion = nn.CrossEntropyLoss()
    for _ in range(3):
        model.train()
        for tokens, labels in loader:
            optimizer.zero_grad()
            criterion(model(tokens), labels).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("test acc", (model(test.tokens).argmax(1) == test.labels).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
