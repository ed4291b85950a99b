"""One-block transformer encoder written with Linear layers only."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

T, VOCAB, DIM = 10, 40, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(T, DIM)
        self.q, self.k, self.v = (nn.Linear(DIM, DIM) for _ in range(3))
        self.norm = nn.LayerNorm(DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))
        self.out = nn.Linear(DIM, 2)

    def forward(self, ids):
        positions = torch.arange(T, device=ids.device).expand(len(ids), T)
        h = self.tok(ids) + self.pos(positions)
        att = torch.softmax(self.q(h) @ self.k(h).transpose(1, 2) / DIM ** 0.5, dim=-1)
        h = self.norm(h + att @ self.v(h))
        h = h + self.ff(h)
        return self.out(h.mean(dim=1))


def sequences(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCAB, (n, T), generator=g)
    return ids, ((ids < 8).sum(1) > 2).long()


def main():
    torch.manual_seed(90)
    ids, y = sequences(1500, 51)
    ids_t, y_t = sequences(400, 52)
    model = Block()
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=4e-3),
        data_loader=DataLoader(TensorDataset(ids, y), batch_size=50), noise_multiplier=1.0, max_grad_norm=1.0)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        print("acc", (model(ids_t).argmax(1) == y_t).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
