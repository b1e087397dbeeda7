"""Values: what a training method computes with: real vectors, or ghosts in timing-only runs.

A method never asks which it holds. Arithmetic on values costs no simulated time; only verbs do, and their
cost follows from `nbytes`. Values are immutable: arithmetic makes new ones, so that a value in flight cannot
change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn, Self, final


class Vector(ABC):
    """A model, a gradient or a part of one. `nbytes`: its size on the wire, of the model *costed*."""

    __slots__ = ()
    nbytes: float

    @abstractmethod
    def __add__(self, other: float | Self) -> Self: ...
    @abstractmethod
    def __sub__(self, other: Self) -> Self: ...
    @abstractmethod
    def __mul__(self, other: float | Self) -> Self: ...
    @abstractmethod
    def __truediv__(self, other: float | Self) -> Self: ...
    @abstractmethod
    def sqrt(self) -> Self:
        """Elementwise square root."""

    @abstractmethod
    def split(self, nbytes: tuple[float, ...]) -> list[Self]:
        """Consecutive parts whose sizes on the wire are `nbytes` (they add up to this value's)."""

    def __rmul__(self, other: float) -> Self:
        return self * other


@final
class Ghost(Vector):
    """A size without content: what values are in timing-only runs."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: float) -> None:
        self.nbytes = nbytes

    def __add__(self, other: float | Ghost) -> Ghost:
        return self

    def __sub__(self, other: Ghost) -> Ghost:
        return self

    def __mul__(self, other: float | Ghost) -> Ghost:
        return self

    def __truediv__(self, other: float | Ghost) -> Ghost:
        return self

    def sqrt(self) -> Ghost:
        """Itself: a ghost has no content."""
        return self

    def split(self, nbytes: tuple[float, ...]) -> list[Ghost]:
        """One ghost per part."""
        return [Ghost(part) for part in nbytes]

    def _no_content(self) -> NoReturn:
        raise TypeError(
            "a timing-only run has no numbers to branch on: give the scenario a `problem`, "
            "and declare `needs_math = True` in the method"
        )

    def __bool__(self) -> NoReturn:
        self._no_content()

    def __float__(self) -> NoReturn:
        self._no_content()

    def __lt__(self, other: object) -> NoReturn:
        self._no_content()

    def __gt__(self, other: object) -> NoReturn:
        self._no_content()

    def __repr__(self) -> str:
        return f"Ghost({self.nbytes:g} bytes)"
