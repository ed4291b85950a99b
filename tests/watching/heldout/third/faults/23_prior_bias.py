import torch
from torch import nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine

X, y = make_classification(2200, 18, n_informative=9, n_classes=4, weights=[0.6, 0.2, 0.15], random_state=4)
X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
xtr, ytr, xte, yte = X[:1800], y[:1800], X[1800:], y[1800:]


class Classifier(nn.Module):
    def __init__(self, prior):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(18, 36), nn.ReLU())
        self.head = nn.Linear(36, len(prior))
        with torch.no_grad():
            self.head.bias.copy_(prior.log())

    def forward(self, x):
        return self.head(self.body(x))


counts = torch.bincount(ytr, minlength=4).float()
model = Classifier(counts / counts.sum())
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
engine = PrivacyEngine()
model, opt, loader = engine.make_private_with_epsilon(
    module=model, optimizer=opt, data_loader=DataLoader(TensorDataset(xtr, ytr), batch_size=90),
    target_epsilon=1.5, target_delta=1e-5, epochs=3, max_grad_norm=1.0)
for _ in range(3):
    for xb, yb in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        opt.step()
print("acc", (model(xte).argmax(1) == yte).float().mean().item(), "eps", engine.get_epsilon(1e-5))
torch.save(model._module.state_dict(), "clf.pt")
