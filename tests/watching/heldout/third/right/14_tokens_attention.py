import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.layers import DPMultiheadAttention


class TokenNet(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.tok = nn.Embedding(17, d)
        self.pos = nn.Embedding(16, d)
        self.attn = DPMultiheadAttention(d, 2, dropout=0.0, batch_first=True)
        self.ln = nn.LayerNorm(d)
        self.out = nn.Linear(16 * d, 10)

    def forward(self, t):
        pos = torch.arange(t.shape[1]).expand(t.shape[0], -1)
        h = self.tok(t) + self.pos(pos)
        h = self.ln(h + self.attn(h, h, h, need_weights=False)[0])
        return self.out(h.flatten(1))


img = torch.tensor(load_digits().images)
tokens = nn.functional.avg_pool2d(img.unsqueeze(1), 2).flatten(1).round().long()
lab = torch.tensor(load_digits().target)
net = TokenNet()
opt = torch.optim.AdamW(net.parameters(), lr=1e-2, betas=(0.9, 0.98))
warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 10))
engine = PrivacyEngine()
net, opt, dl = engine.make_private_with_epsilon(
    module=net, optimizer=opt, data_loader=DataLoader(TensorDataset(tokens[:1400], lab[:1400]), batch_size=70),
    target_epsilon=6.0, target_delta=1e-5, epochs=2, max_grad_norm=1.0)
for _ in range(2):
    net.train()
    for tb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(net(tb), yb, label_smoothing=0.05).backward()
        opt.step()
        warm.step()
net.eval()
with torch.no_grad():
    print("acc", (net(tokens[1400:]).argmax(1) == lab[1400:]).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save(net._module.state_dict(), "tokens.pt")
