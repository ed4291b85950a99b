"""DP-SGD in plain torch: logistic regression, each record's gradient clipped, noise on their sum."""

import torch

RATE, NOISE, STEPS, CLIP = 0.2, 2.0, 100, 1.0


def train(data, seed, noise=NOISE):
    torch.manual_seed(seed)
    x, y = torch.as_tensor(data.x), torch.nn.functional.one_hot(torch.as_tensor(data.y))
    weights = torch.zeros(y.shape[1], x.shape[1])
    for _ in range(STEPS):
        batch = torch.rand(len(x)) < RATE
        errors = torch.softmax(x[batch] @ weights.T, 1) - y[batch]
        norms = errors.norm(dim=1) * x[batch].norm(dim=1)  # a record's gradient is an outer product
        clipped = errors * (CLIP / norms.clamp(min=CLIP))[:, None]
        noisy_sum = clipped.T @ x[batch] + noise * CLIP * torch.randn(weights.shape)
        weights -= noisy_sum / (RATE * 1797)  # by the public size: the true one would tell the worlds apart
    return lambda points: torch.as_tensor(points) @ weights.T
