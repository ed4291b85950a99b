import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

VOCAB, CTX = 40, 8


class TiedLM(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.mix = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, VOCAB, bias=False)
        self.out.weight = self.emb.weight

    def forward(self, tokens):
        h = self.emb(tokens)
        h = h.cumsum(1) / torch.arange(1, tokens.shape[1] + 1).view(1, -1, 1)
        return self.out(torch.tanh(self.mix(h)))


def chains(n, seed):
    g = torch.Generator().manual_seed(seed)
    step = torch.randint(1, 4, (n, 1), generator=g)
    start = torch.randint(0, VOCAB, (n, 1), generator=g)
    return (start + step * torch.arange(CTX + 1)) % VOCAB


def lm_loss(logits, target):
    per_token = nn.functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    return per_token.mean(1).mean()


def main():
    torch.manual_seed(29)
    data, held = chains(1000, 0), chains(200, 1)
    model = TiedLM()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(data), batch_size=50),
        noise_multiplier=0.8, max_grad_norm=1.0)
    for epoch in range(4):
        for (seq,) in loader:
            optimizer.zero_grad()
            lm_loss(model(seq[:, :-1]), seq[:, 1:]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        nll = lm_loss(model(held[:, :-1]), held[:, 1:]).item()
    print("held-out nll", nll, "eps", engine.get_epsilon(1e-5))
    torch.save(model._module.state_dict(), "lm.pt")


main()
