"""Private sentiment-like classifier; keeps the embedding gradient sparse."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class BagOfEmbeddings(nn.Module):
    def __init__(self, vocab=400, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.fc = nn.Linear(dim, 2)

    def forward(self, ids):
        return self.fc(self.emb(ids).mean(1))


def build_corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    zipf = (torch.rand(n, 12, generator=g) ** 3 * 380).long()
    cue = torch.rand(n, 12, generator=g) < 0.25
    return torch.where(cue, 380 + 10 * y[:, None] + torch.randint(0, 10, (n, 12), generator=g), zipf), y


def sparse_step(optimizer, embedding):
    if optimizer.pre_step():
        weight = embedding.weight
        touched = weight.summed_grad.abs().sum(dim=1, keepdim=True) > 0
        weight.grad.mul_(touched)            # leave the unused vocabulary alone
        optimizer.original_optimizer.step()


def main():
    torch.manual_seed(9)
    X, y = build_corpus(1500, 100)
    Xt, yt = build_corpus(400, 101)
    model = BagOfEmbeddings()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(X, y), batch_size=30),
        noise_multiplier=0.8, max_grad_norm=0.5,
    )
    for _ in range(2):
        for ids, lab in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(ids), lab).backward()
            sparse_step(optimizer, model.emb)
    with torch.no_grad():
        print("acc", (model(Xt).argmax(1) == yt).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
