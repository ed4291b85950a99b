"""Libraries whose trainings are watched: what to wait for in a script, and who takes hold of it. Plain data: whoever
starts a script writes it down for the hook inside, which imports nothing to know it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from epsilometer.errors import InvalidInput
from epsilometer.registry import Registry, instance_of


@dataclass(frozen=True)
class Framework:
    """`modules` are waited for; as soon as a script has imported one, `attach` ("package.module:function") is called
    there with that module and the process's `Trainings`. `begins` says in words what begins a watched training, and
    `versions` the first and the last version of each library that was tried, as far as somebody did. With
    `checks_alone` there are checks of its trainings without canaries too. One that is `declared` is waited for only
    where somebody says what is accounted: scripts of every kind import its modules."""

    name: str
    modules: tuple[str, ...]
    attach: str
    begins: str
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    checks_alone: bool = True
    declared: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.]+:\w+", self.attach):
            raise InvalidInput("attach", self.attach, "a function's name, as in package.module:function")

    @property
    def summary(self) -> str:
        return f"watched from {self.begins.rstrip(',')} on"

    @property
    def libraries(self) -> tuple[str, ...]:
        """Those that its modules are of."""
        return tuple(dict.fromkeys(module.partition(".")[0] for module in self.modules))

    def remark(self, library: str, version: str) -> str:
        """What is to be said of this version of a library; empty if it was tried.

        >>> FRAMEWORKS["opacus"].remark("opacus", "1.6.0")
        ''
        >>> FRAMEWORKS["opacus"].remark("opacus", "2.0")
        'opacus 2.0 is watched as versions 1.0 to 1.6 are, but was not tried'
        """
        if library not in self.versions or not version:
            return ""
        first, last = self.versions[library]
        if _numbers(first) <= _numbers(version)[: len(_numbers(first))] and _numbers(version)[:2] <= _numbers(last):
            return ""
        return f"{library} {version} is watched as versions {first} to {last} are, but was not tried"


# Modules of accountants that loops by hand call (`frameworks/torch/accountants.py`).
ACCOUNTANTS = (
    "opacus.accountants.rdp",
    "opacus.accountants.prv",
    "opacus.accountants.gdp",
    "dp_accounting.privacy_accountant",
    "autodp.rdp_acct",
    "tensorflow_privacy.privacy.analysis.compute_dp_sgd_privacy_lib",
    "tensorflow_privacy.privacy.analysis.compute_dp_sgd_privacy",
)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


FRAMEWORKS: Registry[Framework] = Registry(
    "frameworks",
    {
        "opacus": Framework(
            "opacus",
            ("opacus.privacy_engine",),
            "epsilometer.watching.frameworks.opacus.attach:attach",
            "PrivacyEngine.make_private",
            {"opacus": ("1.0", "1.6")},
        ),
        "jax": Framework(
            "jax",
            ("optax.contrib._privacy", "jax_privacy.experimental.execution_plan"),
            "epsilometer.watching.frameworks.jax.attach:attach",
            "optax's differentially_private_aggregate, or a plan of jax-privacy,",
            {"optax": ("0.2", "0.2"), "jax_privacy": ("2.0", "2.0")},
            checks_alone=False,
        ),
        "torch": Framework(
            "torch",
            ("torch", *ACCOUNTANTS),
            "epsilometer.watching.frameworks.torch.attach:attach",
            "the first step of a torch optimizer (with --noise-multiplier)",
            {"torch": ("2.6", "2.13")},
            declared=True,
        ),
    },
    argument="framework",
    expected="a watching.framework.Framework with the name {name!r}",
    accept=instance_of(Framework),
)
