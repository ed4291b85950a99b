import torch
from torch import nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.schedulers import StepNoise

TARGET_EPS, DELTA, EPOCHS = 3.0, 1e-5, 4
img, lab = load_digits(return_X_y=True)
img, lab = torch.tensor(img).float().view(-1, 1, 8, 8) / 16, torch.tensor(lab)
cnn = nn.Sequential(nn.Conv2d(1, 10, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(160, 10))
opt = torch.optim.RMSprop(cnn.parameters(), lr=3e-3)
engine = PrivacyEngine(accountant="rdp")
cnn, opt, dl = engine.make_private_with_epsilon(
    module=cnn, optimizer=opt, data_loader=DataLoader(TensorDataset(img[:1400], lab[:1400]), batch_size=70),
    target_epsilon=TARGET_EPS, target_delta=DELTA, epochs=EPOCHS, max_grad_norm=1.0)
sched = StepNoise(opt, step_size=1, gamma=0.8)
for epoch in range(EPOCHS):
    cnn.train()
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(cnn(xb), yb).backward()
        opt.step()
    sched.step()
cnn.eval()
with torch.no_grad():
    acc = (cnn(img[1400:]).argmax(1) == lab[1400:]).float().mean().item()
print(f"({TARGET_EPS}, {DELTA})-DP model, accuracy {acc:.3f}")
torch.save(cnn._module.state_dict(), "dp_cnn.pt")
