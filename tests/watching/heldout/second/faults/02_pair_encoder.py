import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


class Encoder(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 64), nn.Tanh(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def make_pairs(n, d=20, seed=0):
    g = torch.Generator().manual_seed(seed)
    latent = torch.randn(n, 6, generator=g)
    left = latent @ torch.randn(6, d, generator=g) + 0.2 * torch.randn(n, d, generator=g)
    right = latent @ torch.randn(6, d, generator=g) + 0.2 * torch.randn(n, d, generator=g)
    return left, right


def info_nce(z1, z2, temperature=0.1):
    sims = z1 @ z2.t() / temperature
    target = torch.arange(len(z1))
    return 0.5 * (F.cross_entropy(sims, target) + F.cross_entropy(sims.t(), target))


def main():
    torch.manual_seed(11)
    left, right = make_pairs(1000)
    train = TensorDataset(left[:800], right[:800])
    model = Encoder(20, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=DataLoader(train, batch_size=40),
        noise_multiplier=1.1, max_grad_norm=2.0)

    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            loss = info_nce(model(a), model(b))
            loss.backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        sims = model(left[800:]) @ model(right[800:]).t()
    recall = (sims.argmax(1) == torch.arange(200)).float().mean()
    print("held-out recall@1", float(recall), "epsilon", engine.get_epsilon(delta=1e-5))
    torch.save(model.state_dict(), "encoder.pt")


if __name__ == "__main__":
    main()
