"""Hooks that only log: number of forward calls, shapes of gradients, norm of the privatised update."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from opacus import PrivacyEngine


class Monitor:
    def __init__(self):
        self.forwards, self.shapes, self.noisy_norms = 0, set(), []

    def on_forward(self, module, args, output):
        self.forwards += 1

    def on_grad(self, grad):
        self.shapes.add(tuple(grad.shape))

    def on_step(self, optimizer, args, kwargs):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        self.noisy_norms.append(sum(float(p.grad.norm()) ** 2 for p in params) ** 0.5)


def main():
    torch.manual_seed(64)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    mon = Monitor()
    base = torch.optim.SGD(net.parameters(), lr=0.4)
    base.register_step_post_hook(mon.on_step)       # sees p.grad after clipping and noise
    engine = PrivacyEngine()
    model, opt, loader = engine.make_private(
        module=net, optimizer=base,
        data_loader=DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=60),
        noise_multiplier=1.0, max_grad_norm=1.0)
    net[0].register_forward_hook(mon.on_forward)
    for p in net.parameters():
        p.register_hook(mon.on_grad)
    for _ in range(3):
        for xb, yb in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    print("steps", len(mon.noisy_norms), "forwards", mon.forwards, "last noisy norm", mon.noisy_norms[-1])
    print("shapes", sorted(mon.shapes))
    with torch.no_grad():
        print("acc", (model(X[1500:]).argmax(1) == y[1500:]).float().mean().item())
    print("eps", engine.get_epsilon(1e-5))


if __name__ == "__main__":
    main()
