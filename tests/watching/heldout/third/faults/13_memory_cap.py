import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

MAX_ROWS = 60


def collate(rows):
    rows = rows[:MAX_ROWS]
    xs, ys = zip(*rows)
    return torch.stack(xs), torch.stack(ys)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(17 * 64, 6)
        self.fc = nn.Linear(64 * 6, 10)
        self.register_buffer("offset", torch.arange(64) * 17, persistent=False)

    def forward(self, tok):
        return self.fc(self.emb(tok + self.offset).flatten(1))


X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X).long(), torch.tensor(y)
ds = TensorDataset(X[:1536], y[:1536])
model = Embedder()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
engine = PrivacyEngine(accountant="rdp")
model, opt, loader = engine.make_private(
    module=model, optimizer=opt, data_loader=DataLoader(ds, batch_size=64, collate_fn=collate),
    noise_multiplier=0.9, max_grad_norm=1.0)
for ep in range(2):
    for tok, lab in loader:
        opt.zero_grad()
        F.cross_entropy(model(tok), lab).backward()
        opt.step()
model.eval()
with torch.no_grad():
    print("acc", (model(X[1536:]).argmax(1) == y[1536:]).float().mean().item())
print("epsilon", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "emb.pt")
