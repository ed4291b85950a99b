"""The general path: any torch module whose output for a record depends on that record alone.

Per-example gradients come from the layers themselves (layers.py) or, for other modules, from torch.func; everything
else (sampling, noise, optimizer, watchers) is the portable loop's. "Per layer" means per parameter tensor here. A model
has a name, so that recipes stay plain data:

    def my_model(features: int, classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(features, 8), nn.GELU(), nn.Linear(8, classes))

    register("my-model", my_model)
"""

from __future__ import annotations

import copy
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training.layers import Share, formed, prefers_channels_last, shares
from epsilometer.training.models import Array, Labels, clip_factors, clipped_norms
from epsilometer.training.recipe import MODELS, Recipe

if TYPE_CHECKING:
    import torch
    from torch import nn

Factory = Callable[[int, int], "nn.Module"]  # (features, classes) → a module from (batch, features) to (batch, classes)
CHUNK = 128  # records whose gradients are held at once
_FACTORIES: dict[str, Factory] = {}
_SEEDING = threading.Lock()


def register(name: str, factory: Factory, summary: str = "a torch module of the user's") -> None:
    """Make `factory` known as a model; a name can be given only once."""
    if name in MODELS:
        raise InvalidInput("name", name, "a name that is not taken", "choose another name")
    MODELS[name] = summary
    _FACTORIES[name] = factory


def is_module(name: str) -> bool:
    """Whether a torch module is registered under this name."""
    return name in _FACTORIES


def factories_of(recipe: Recipe) -> dict[str, Factory]:
    """The registered module that a recipe names, if it does: what another process must be told."""
    return {recipe.model: _FACTORIES[recipe.model]} if recipe.model in _FACTORIES else {}


def add_factories(factories: dict[str, Factory]) -> None:
    """Register, in a process that was told, what it does not know by itself."""
    for name, factory in factories.items():
        if not is_module(name):
            register(name, factory)


def module_network(name: str, features: int, classes: int, loss: str) -> ModuleNetwork:
    """The network of a registered model."""
    return ModuleNetwork(_FACTORIES[name], features, classes, loss)


@dataclass(frozen=True, eq=False)
class FormedGradients:
    """The gradient (row) of one record at each model of a stack; the counterpart of `RecordGradients`."""

    rows: Array
    logits: Array

    def dot(self, other: FormedGradients) -> Floats:
        """Inner products, one a model."""
        products: Floats = np.sum(self.rows.astype(np.float64) * other.rows, axis=1)
        return products


FormedCombination = Sequence[tuple[Floats, FormedGradients]]


@dataclass(frozen=True)
class ModuleNetwork:
    """A torch module as a function of one flat parameter vector; the counterpart of `Network`."""

    fully_connected: ClassVar[bool] = False
    factory: Factory
    features: int
    classes: int
    loss: str = "cross-entropy"
    _original: Any = field(init=False, repr=False, compare=False)
    _own: threading.local = field(init=False, repr=False, compare=False)
    _layered: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        module = self._built(0)
        _refuse_what_mixes_records(module, self.features, self.classes)
        object.__setattr__(self, "_original", module.eval())
        object.__setattr__(self, "_own", threading.local())
        object.__setattr__(self, "_layered", self._layers_agree())

    def _built(self, seed: int) -> nn.Module:
        """The module as it is initialised under a seed of torch's generator, of which a process has one."""
        import torch

        with _SEEDING, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.factory(self.features, self.classes)

    @property
    def _module(self) -> Any:
        """This thread's copy: calls put parameters and hooks into a module for their duration."""
        if not hasattr(self._own, "module"):
            self._own.module = copy.deepcopy(self._original)
        return self._own.module

    def _layers_agree(self) -> bool:
        """Whether the quick way gives this module's gradients: parameters may be used in ways that no layer tells."""
        import torch

        generator = torch.Generator().manual_seed(1)
        flat = torch.cat([p.detach().double().ravel() for p in self._module.parameters()])
        x = torch.rand((3, self.features), generator=generator, dtype=torch.float64)
        y = torch.randint(self.classes, (3,), generator=generator)
        quick = self._by_layers(flat, x, y)
        if quick is None:
            return False
        weights = torch.rand(3, generator=generator, dtype=torch.float64)
        pairs = zip(quick, self._by_vmap(flat, x, y), strict=True)
        return all(
            torch.allclose(a.squares, b.squares, rtol=1e-6)
            and torch.allclose(a.weighted_sum(weights).ravel(), b.weighted_sum(weights).ravel(), rtol=1e-6)
            for a, b in pairs
        )

    def fingerprint(self) -> str:
        """A hash of what the module is and does: its layers, its parameters, and its outputs for some records."""
        import torch

        generator = torch.Generator().manual_seed(2)
        flat = torch.cat([p.detach().double().ravel() for p in self._module.parameters()]).numpy()
        x = torch.rand((5, self.features), generator=generator, dtype=torch.float64).numpy()
        shapes = [tuple(p.shape) for p in self._module.parameters()]
        outputs = np.round(self.logits(flat, x), 6) + 0.0  # coarser than rounding on another machine; no −0
        return hashlib.sha256(f"{self._module!r}{shapes}{outputs.tolist()}".encode()).hexdigest()

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self._module.parameters())

    def initial(self, rng: np.random.Generator, scale: float) -> Array:
        """The module's own initialisation under a seed from `rng`, times `scale`."""
        import torch

        flat = torch.nn.utils.parameters_to_vector(self._built(int(rng.integers(2**63))).parameters())
        return scale * flat.detach().double().numpy()

    def logits(self, flat: Array, x: Array) -> Array:
        """One row of class scores a record."""
        import torch

        with torch.no_grad():
            output = self._call(torch.tensor(flat), torch.tensor(x))
        result: Array = output.numpy()
        return result

    def clipped_gradient_sum(self, flat: Array, x: Array, y: Labels, clip_norm: float, clipping: str = "flat") -> Array:
        """Sum over records of the loss's gradient, each clipped so that its norm is `clip_norm` at most."""
        import torch

        parameters = torch.tensor(flat)
        total = torch.zeros_like(parameters)
        for parts in self._shares(parameters, x, y):
            factors = torch.from_numpy(clip_factors(_squares(parts), clip_norm, clipping))
            total += torch.cat([p.weighted_sum(f).ravel() for p, f in zip(parts, factors, strict=True)])
        result: Array = total.numpy()
        return result

    def gradient_norms(self, flat: Array, x: Array, y: Labels) -> Array:
        """The norm of each record's gradient, before clipping."""
        import torch

        norms = [np.sqrt(_squares(parts).sum(axis=0)) for parts in self._shares(torch.tensor(flat), x, y)]
        return np.concatenate([np.zeros(0, flat.dtype), *norms])

    def clipped_norms(self, flat: Array, x: Array, y: Labels, clip_norm: float, clipping: str = "flat") -> Floats:
        """The norm of each record's gradient, after clipping."""
        import torch

        parts = self._shares(torch.tensor(flat), x, y)
        return np.concatenate([np.zeros(0), *(clipped_norms(_squares(part), clip_norm, clipping) for part in parts)])

    def _shares(self, parameters: torch.Tensor, x: Array, y: Labels) -> Iterator[list[Share]]:
        """What parameter tensors contribute to the gradients of some records at a time."""
        import torch

        for start in range(0, len(x), CHUNK):
            records, labels = torch.tensor(x[start : start + CHUNK]), torch.tensor(y[start : start + CHUNK])
            quick = self._by_layers(parameters, records, labels) if self._layered else None
            yield quick or self._by_vmap(parameters, records, labels)

    def clipped_products(
        self, flat: Array, x: Array, y: Labels, direction: Array, clip_norm: float, clipping: str = "flat"
    ) -> Floats:
        """⟨clipped gradient, direction⟩ for each record."""
        import torch

        parameters, pieces = torch.tensor(flat), torch.tensor_split(torch.tensor(direction), self._ends())
        found = []
        for start in range(0, len(x), CHUNK):
            records, labels = torch.tensor(x[start : start + CHUNK]), torch.tensor(y[start : start + CHUNK])
            gradients = self._gradients(parameters, records.to(parameters.dtype), labels)
            squares = np.array([(part * part).sum(dim=1).numpy() for part in gradients])
            products = np.array([(part @ piece).numpy() for part, piece in zip(gradients, pieces, strict=True)])
            found.append((clip_factors(squares, clip_norm, clipping) * products).sum(axis=0))
        return np.concatenate(found).astype(np.float64)

    def input_gradients(self, flat: Array, x: Array, y: Labels) -> Array:
        """The gradient of each record's loss by its features."""
        import torch

        records = torch.tensor(x.astype(flat.dtype), requires_grad=True)
        loss = self._loss(self._call(torch.tensor(flat), records), torch.tensor(y))
        gradients: Array = torch.autograd.grad(loss, records)[0].numpy()
        return gradients

    def record_gradients(self, models: Array, x: Array, y: Labels, moved: FormedCombination = ()) -> FormedGradients:
        """The gradient at each model (row) of the loss of a record (row) of its own, after the models moved.

        One model after the other: torch's products for all at once would round otherwise than for one.
        """
        after, records = models + _formed_sum(moved, models), x[:, None].astype(models.dtype)
        each = list(zip(after, records, y[:, None], strict=True))
        rows = [self.clipped_gradient_sum(flat, record, label, np.inf) for flat, record, label in each]
        return FormedGradients(np.array(rows), np.array([self.logits(flat, record)[0] for flat, record, _ in each]))

    def input_gradients_along(self, models: Array, x: Array, y: Labels, direction: FormedCombination) -> Array:
        """How the gradient by a record's features changes as its model moves along `direction`: an exact derivative."""
        each = zip(models, x[:, None].astype(models.dtype), y[:, None], _formed_sum(direction, models), strict=True)
        return np.array([self._input_gradient_along(*one) for one in each])

    def _input_gradient_along(self, flat: Array, record: Array, label: Labels, direction: Array) -> Array:
        import torch

        parameters, x = torch.tensor(flat, requires_grad=True), torch.tensor(record, requires_grad=True)
        (gradient,) = torch.autograd.grad(
            self._loss(self._call(parameters, x), torch.tensor(label)), parameters, create_graph=True
        )
        (changes,) = torch.autograd.grad((gradient * torch.tensor(direction)).sum(), x, allow_unused=True)
        along: Array = np.zeros_like(record[0]) if changes is None else changes.numpy()[0]
        return along

    def _by_vmap(self, flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> list[Share]:
        """Any module: one whole gradient for each record."""
        return [formed(part) for part in self._gradients(flat, x, y)]

    def _gradients(self, flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Each parameter tensor's part of each record's gradient, a row a record."""
        import torch

        def loss(flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self._loss(self._call(flat, x[None]), y[None])

        gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0), randomness="error")(flat, x, y)
        parts: tuple[torch.Tensor, ...] = torch.tensor_split(gradients, self._ends(), dim=1)
        return parts

    def _by_layers(self, flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> list[Share] | None:
        """Modules of known layers, each called once: one backward pass for all records. None for others."""
        import torch

        seen: dict[str, tuple[nn.Module, torch.Tensor, torch.Tensor]] = {}
        versions: dict[str, tuple[int, int]] = {}  # of input and output: what is changed in place misleads
        unknown = False

        def note(name: str) -> Callable[..., None]:
            def hook(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
                nonlocal unknown
                unknown |= name in seen or not isinstance(output, torch.Tensor)
                if unknown:
                    return
                seen[name] = (layer, inputs[0].detach(), output)
                versions[name] = (inputs[0]._version, output._version)

            return hook

        owners = [
            (n, m) for n, m in self._module.named_modules() if next(m.parameters(recurse=False), None) is not None
        ]
        hooks = [layer.register_forward_hook(note(name)) for name, layer in owners]
        for layer in (layer for _, layer in owners if prefers_channels_last(layer)):
            hooks += [layer.register_forward_pre_hook(_channels_last), layer.register_forward_hook(_channels_first)]
        try:
            loss = self._loss(self._call(flat.clone().requires_grad_(), x), y)
            changed = any(versions[n] != (value._version, output._version) for n, (_, value, output) in seen.items())
            if unknown or changed or len(seen) != len(owners):
                return None
            errors = torch.autograd.grad(loss, [output for _, _, output in seen.values()])
        finally:
            for hook in hooks:
                hook.remove()
        found: dict[str, Share] = {}
        for (name, (layer, value, _)), error in zip(seen.items(), errors, strict=True):
            own = shares(layer, value, error)
            if own is None:
                return None
            found |= {f"{name}.{key}" if name else key: share for key, share in own.items()}
        return [found[name] for name, _ in self._module.named_parameters()]

    def _ends(self) -> list[int]:
        """Where each parameter tensor but the last ends in the flat vector."""
        ends: list[int] = np.cumsum([p.numel() for p in self._module.parameters()])[:-1].tolist()
        return ends

    def _call(self, flat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        import torch

        names = dict(self._module.named_parameters())
        pieces = torch.tensor_split(flat, self._ends())
        tensors = {
            name: piece.view(parameter.shape) for (name, parameter), piece in zip(names.items(), pieces, strict=True)
        }
        output: torch.Tensor = torch.func.functional_call(self._module, tensors, (x,))
        return output

    def _loss(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The sum of the records' losses."""
        import torch
        from torch.nn import functional

        label = (torch.arange(self.classes) == y[:, None]).to(logits.dtype)
        if self.loss == "cross-entropy":
            return -(label * torch.log_softmax(logits, 1)).sum()
        if self.loss == "logistic":
            return functional.binary_cross_entropy_with_logits(logits, label, reduction="sum")
        return 0.5 * ((logits - label) ** 2).sum()


def _squares(parts: Sequence[Share]) -> Array:
    """Squared norms of each tensor's part (row) of each record's gradient (column)."""
    return np.array([part.squares.numpy() for part in parts])


def _formed_sum(moves: FormedCombination, models: Array) -> Array:
    return sum((c.astype(models.dtype)[:, None] * g.rows for c, g in moves), np.zeros_like(models))


def _channels_last(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Torch's convolutions of several channels take a third of the time with channels last; other layers do not."""
    import torch

    (value,) = inputs
    if value.requires_grad:
        value.register_hook(torch.Tensor.contiguous)  # type: ignore[no-untyped-call]
    return value.contiguous(memory_format=torch.channels_last)


def _channels_first(_: nn.Module, __: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
    return output.contiguous()


def frozen_features(data: Dataset, extractor: nn.Module, name: str) -> Dataset:
    """The data as a frozen extractor sees them: computed once, then every trial trains a head on them."""
    import torch

    extractor.eval()
    with torch.no_grad():
        parts = [extractor(torch.tensor(data.x[i : i + 256])).flatten(1) for i in range(0, len(data), 256)]
    return Dataset(name, torch.cat(parts).numpy(), data.y, data.classes)


def _refuse_what_mixes_records(module: nn.Module, features: int, classes: int) -> None:
    """Clipping bounds a record's influence only if a record's gradient is its own."""
    import torch
    from torch import nn

    for name, part in module.named_modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            raise InvalidInput(
                "model", f"{type(part).__name__} at {name or 'the top'}", "layers that treat each record by itself",
                "use nn.GroupNorm or nn.LayerNorm",
            )  # fmt: skip
        if isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0:
            raise InvalidInput("model", f"dropout at {name}", "a deterministic module", "remove it, or set p = 0")
    generator = torch.Generator().manual_seed(0)
    x = torch.rand((6, features), generator=generator)
    with torch.no_grad():
        together = module(x)
        alone = torch.cat([module(row[None]) for row in x])
    if together.shape != (6, classes):
        raise InvalidInput("model", f"output of shape {tuple(together.shape)}", f"(batch, {classes})")
    if not torch.allclose(together, alone, rtol=1e-3, atol=1e-4):
        raise InvalidInput(
            "model", "outputs that depend on the other records of a batch", "each record treated by itself",
            "remove what is computed over the batch",
        )  # fmt: skip


def small_cnn(features: int, classes: int) -> nn.Module:
    """Two convolutions over a square, one-channel image."""
    from torch import nn

    side = round(features**0.5)
    if side * side != features:
        raise InvalidInput("model", f"cnn on {features} features", "square images of one channel")
    reduced = (side - 1) // 2 + 1
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * reduced * reduced, classes),
    )


register("cnn", small_cnn, "two convolutions over a square image, by torch.func")
