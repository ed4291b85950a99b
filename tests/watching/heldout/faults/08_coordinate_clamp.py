"""DP-AdamW on a bag-of-words classifier. Clipping is value-based (clip_grad_value_ style)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer

gen = torch.Generator().manual_seed(99)
VOCAB, N = 120, 2400
topics = torch.rand(4, VOCAB, generator=gen) ** 4
labels = torch.randint(0, 4, (N,), generator=gen)
counts = torch.poisson(topics[labels] * 3, generator=gen)
docs = counts.clamp(max=5) / 5


class ValueClipDPOptimizer(DPOptimizer):
    def clip_and_accumulate(self):
        c = self.max_grad_norm
        for p in self.params:
            clipped = p.grad_sample.clamp(-c, c)
            p.summed_grad = clipped.sum(dim=0)


def main():
    train, held = TensorDataset(docs[:2000], labels[:2000]), (docs[2000:], labels[2000:])
    model = nn.Sequential(nn.Linear(VOCAB, 24), nn.ReLU(), nn.Linear(24, 4))
    base = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=model, optimizer=base, data_loader=DataLoader(train, batch_size=40),
        noise_multiplier=1.0, max_grad_norm=0.1,
    )
    private = ValueClipDPOptimizer(
        base, noise_multiplier=opt.noise_multiplier, max_grad_norm=opt.max_grad_norm,
        expected_batch_size=opt.expected_batch_size,
    )
    private.attach_step_hook(opt.step_hook)

    for _ in range(2):
        for x, t in loader:
            private.zero_grad()
            nn.functional.cross_entropy(model(x), t).backward()
            private.step()
    with torch.no_grad():
        acc = (model(held[0]).argmax(1) == held[1]).float().mean()
    print(f"held-out {acc:.3f}, epsilon {engine.get_epsilon(1e-5):.2f}")


if __name__ == "__main__":
    main()
