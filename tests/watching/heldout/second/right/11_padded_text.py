import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from opacus import PrivacyEngine

PAD, VOCAB = 0, 120


class Reviews(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            label = int(torch.randint(0, 2, (1,), generator=g))
            length = int(torch.randint(4, 15, (1,), generator=g))
            tokens = torch.randint(1, VOCAB, (length,), generator=g)
            topic = torch.randint(10 + 40 * label, 40 + 40 * label, (length,), generator=g)
            use = torch.rand(length, generator=g) < 0.4
            self.items.append((torch.where(use, topic, tokens), torch.tensor(label)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(samples):
    tokens, labels = zip(*samples)
    return pad_sequence(tokens, batch_first=True, padding_value=PAD), torch.stack(labels)


class Pooler(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.fc = nn.Linear(dim, 2)

    def forward(self, tokens):
        mask = (tokens != PAD).unsqueeze(-1).float()
        pooled = (self.emb(tokens) * mask).sum(1) / mask.sum(1).clamp_min(1)
        return self.fc(pooled)


torch.manual_seed(22)
train, test = Reviews(1000, 1), Reviews(300, 2)
model = Pooler()
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.02),
    data_loader=DataLoader(train, batch_size=40, collate_fn=collate),
    noise_multiplier=0.9, max_grad_norm=1.0)
for epoch in range(3):
    for tokens, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()
tokens, labels = collate(test.items)
with torch.no_grad():
    print("acc", (model(tokens).argmax(1) == labels).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "pooler.pt")
