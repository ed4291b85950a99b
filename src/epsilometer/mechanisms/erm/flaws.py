"""Mistakes that people make in private ERM, to be made on purpose: an audit must find each of them."""

from __future__ import annotations

from dataclasses import dataclass

from epsilometer import validate


@dataclass(frozen=True)
class Flaws:
    """`noise_scale` multiplies the noise (½: the 2 of the sensitivity forgotten); `unclipped` records keep their norm,
    whatever was stated; a `free_intercept` is not regularised.

    >>> Flaws(noise_scale=0.5, unclipped=True).in_words()
    ['the noise is 0.5 × what is needed', 'records are not clipped']
    """

    noise_scale: float = 1.0
    unclipped: bool = False
    free_intercept: bool = False

    def __post_init__(self) -> None:
        validate.real("noise_scale", self.noise_scale, above=0, closed="[", remedy="1 is no flaw")

    def in_words(self) -> list[str]:
        words = {
            f"the noise is {self.noise_scale:g} × what is needed": self.noise_scale != 1,
            "records are not clipped": self.unclipped,
            "the intercept is not regularised": self.free_intercept,
        }
        return [text for text, made in words.items() if made]


SOUND = Flaws()
