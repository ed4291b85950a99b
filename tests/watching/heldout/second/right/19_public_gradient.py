import torch
from torch import nn
from torch.func import functional_call, grad
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


def survey(n, seed, bias):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 10, generator=g) * 2 - 1
    score = (2 * x[:, 0]).sin() + x[:, 1] * x[:, 2] + bias * x[:, 3]
    return x, (score > 0).long()


def main():
    torch.manual_seed(37)
    x, y = survey(1000, 0, bias=0.0)
    pub_x, pub_y = survey(120, 500, bias=0.4)
    xt, yt = survey(400, 1, bias=0.0)
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    twin = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2)).requires_grad_(False)

    def public_loss(params):
        return nn.functional.cross_entropy(functional_call(twin, params, (pub_x,)), pub_y)

    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.6),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=50),
        noise_multiplier=1.1, max_grad_norm=1.0)
    tail, counted = None, 0
    for epoch in range(4):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            if optimizer.pre_step():
                public = grad(public_loss)({k: v.detach() for k, v in net.named_parameters()})
                for name, p in net.named_parameters():
                    p.grad.lerp_(public[name], 0.25)
                optimizer.original_optimizer.step()
            if epoch == 3:
                now = {k: v.detach().clone() for k, v in net.named_parameters()}
                tail = now if tail is None else {k: tail[k] + now[k] for k in now}
                counted += 1
    averaged = {k: v / counted for k, v in tail.items()}
    with torch.no_grad():
        acc = (functional_call(twin, averaged, (xt,)).argmax(1) == yt).float().mean().item()
    print("acc", acc, "eps", engine.get_epsilon(1e-5))
    torch.save(averaged, "averaged.pt")


main()
