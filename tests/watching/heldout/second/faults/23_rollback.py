import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine


def teacher_data(n, seed, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 16, generator=g) + shift
    w = torch.randn(16, 3, generator=torch.Generator().manual_seed(99))
    return x / 4, (x @ w + 0.3 * torch.randn(n, 3, generator=g)).argmax(1)


class Trainer:
    def __init__(self):
        self.x, self.y = teacher_data(1000, 0)
        self.pub_x, self.pub_y = teacher_data(300, 1, shift=0.2)
        net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
        opt = torch.optim.SGD(net.parameters(), lr=2.0, momentum=0.9)
        self.engine = PrivacyEngine(accountant="rdp")
        self.model, self.opt, self.loader = self.engine.make_private(
            module=net, optimizer=opt,
            data_loader=DataLoader(TensorDataset(self.x, self.y), batch_size=50),
            noise_multiplier=1.0, max_grad_norm=1.0)
        self.path, self.best = "best.pt", float("-inf")

    def public_accuracy(self):
        self.model.eval()
        with torch.no_grad():
            acc = (self.model(self.pub_x).argmax(1) == self.pub_y).float().mean().item()
        self.model.train()
        return acc

    def run_chunk(self):
        for xb, yb in self.loader:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.model(xb), yb).backward()
            self.opt.step()

    def fit(self, chunks=5):
        for c in range(chunks):
            self.run_chunk()
            acc = self.public_accuracy()
            if acc > self.best:
                self.best = acc
                self.engine.save_checkpoint(path=self.path, module=self.model, optimizer=self.opt)
            else:
                self.engine.load_checkpoint(path=self.path, module=self.model, optimizer=self.opt)
                for group in self.opt.param_groups:
                    group["lr"] *= 0.5
            print(f"chunk {c}: public acc {acc:.3f}, eps {self.engine.get_epsilon(1e-5):.2f}")


torch.manual_seed(1)
trainer = Trainer()
trainer.fit()
torch.save(trainer.model._module.state_dict(), "final.pt")
