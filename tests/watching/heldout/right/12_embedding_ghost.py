import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class Recommender(nn.Module):
    """Predicts a rating from the ids of a user segment and an item."""

    def __init__(self, n_segments=30, n_items=60, dim=8):
        super().__init__()
        self.segment = nn.Embedding(n_segments, dim)
        self.item = nn.Embedding(n_items, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, ids):
        z = torch.cat([self.segment(ids[:, 0]), self.item(ids[:, 1])], dim=1)
        return self.mlp(z).squeeze(1)


def ratings(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.stack([torch.randint(0, 30, (n,), generator=g), torch.randint(0, 60, (n,), generator=g)], 1)
    score = ((ids[:, 0] + ids[:, 1]) % 5).float() / 4 + 0.1 * torch.randn(n, generator=g)
    return ids, score


def main():
    ids, score = ratings(2000, 3)
    ids_t, score_t = ratings(400, 4)
    model = Recommender()
    engine = PrivacyEngine(accountant="rdp")
    model, opt, criterion, loader = engine.make_private(
        module=model, optimizer=torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3),
        criterion=nn.MSELoss(), data_loader=DataLoader(TensorDataset(ids, score), batch_size=50),
        noise_multiplier=1.0, max_grad_norm=0.5, grad_sample_mode="ghost")
    for _ in range(2):
        for b, s in loader:
            opt.zero_grad()
            criterion(model(b), s).backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        print("mse", nn.functional.mse_loss(model(ids_t), score_t).item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
