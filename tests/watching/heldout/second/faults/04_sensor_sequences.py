import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.grad_sample import register_grad_sampler


class FrameProjection(nn.Module):
    """Shared projection of every frame, scaled by a fixed 1/sqrt(d)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / d_in ** 0.5)
        self.scale = d_in ** -0.5

    def forward(self, x):
        return (x @ self.weight) * self.scale


@register_grad_sampler(FrameProjection)
def frame_projection_grads(layer, activations, backprops):
    frames = activations[0]
    n, t, d = frames.shape
    frames = frames.transpose(0, 1).reshape(n, t, d)
    grads = backprops.transpose(0, 1).reshape(n, t, -1)
    return {layer.weight: torch.einsum("nti,nto->nio", frames, grads) * layer.scale}


class SequenceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = FrameProjection(9, 24)
        self.out = nn.Linear(24, 3)

    def forward(self, x):
        return self.out(torch.relu(self.proj(x)).mean(dim=1))


def synth(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    freq = torch.tensor([0.3, 0.7, 1.3])[y].view(n, 1, 1)
    t = torch.arange(12.0).view(1, 12, 1)
    phase = torch.rand(n, 1, 9, generator=g)
    gain = torch.exp(torch.randn(n, 1, 1, generator=g))
    x = 2 * gain * torch.sin(freq * t + phase) + torch.randn(n, 12, 9, generator=g)
    return x, y


torch.manual_seed(0)
x, y = synth(900, 1)
xt, yt = synth(300, 2)
model = SequenceNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
engine = PrivacyEngine(accountant="rdp")
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(x, y), batch_size=45),
    noise_multiplier=0.8, max_grad_norm=0.3)
loss_fn = nn.CrossEntropyLoss()
for _ in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss_fn(model(xb), yb).backward()
        optimizer.step()
with torch.no_grad():
    print("acc", (model(xt).argmax(1) == yt).float().mean().item())
print("eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "sequence_net.pt")
