"""A value with numbers: a torch tensor with its size on the wire, computed when first looked at.

Shapes: (d,) for one worker, (n, d) for a cohort; the two broadcast against each other. Sums, products and
roots are rounded element by element (IEEE 754), so a row of a cohort's value has the bits of the single
worker's value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final

from torch import Tensor

from simulator.maths.tape import SKIPPED, recorded
from simulator.values import Vector


class Source(Protocol):
    """Where the numbers of a value come from that has not been looked at yet."""

    def compute(self) -> Tensor:
        """The numbers."""


@final
class Dense(Vector):
    """A model, gradient or part of one.

    Args:
        data: shape (d,) or (n, d).
        nbytes: size on the wire of one worker's value, of the model *costed*.
    """

    __slots__ = ("__weakref__", "_data", "nbytes", "source")

    def __init__(self, data: Tensor | None, nbytes: float, source: Source | None = None) -> None:
        self._data = data
        self.nbytes = nbytes
        self.source = source

    @property
    def data(self) -> Tensor:
        """The numbers; computes them, with all gradients under way, if they are pending."""
        data = self._data
        if data is None:
            if self.source is None:
                raise ValueError("this gradient was cancelled: its numbers do not exist")
            data = self.source.compute()
            self.settle(data)
        return data

    @property
    def pending(self) -> bool:
        """True until the numbers exist."""
        return self._data is None

    def settle(self, data: Tensor | None) -> None:
        """Give the numbers (None: they will never exist) and drop what they were to be computed from."""
        self._data = data
        self.source = None

    @property
    def cancelled(self) -> bool:
        """Whether the numbers will never exist."""
        return self._data is None and self.source is None

    def _noted(self, compute: Callable[[], Tensor]) -> Dense:
        """A value of this size, empty where a run taken up again has its numbers."""
        size = self.nbytes
        return recorded(lambda: Dense(compute(), size), lambda: Dense(None, size, SKIPPED))

    def __add__(self, other: float | Dense) -> Dense:
        return self._noted(lambda: self.data + _numbers(other))

    def __sub__(self, other: Dense) -> Dense:
        return self._noted(lambda: self.data - other.data)

    def __mul__(self, other: float | Dense) -> Dense:
        return self._noted(lambda: self.data * _numbers(other))

    def __truediv__(self, other: float | Dense) -> Dense:
        return self._noted(lambda: self.data / _numbers(other))

    def sqrt(self) -> Dense:
        """Elementwise square root."""
        return self._noted(lambda: self.data.sqrt())

    def split(self, nbytes: tuple[float, ...]) -> list[Dense]:
        """Consecutive parts whose shares of the entries are their shares of the bytes.

        Borders are rounded, so a part may be empty where d is small. Parts of a pending value are pending.
        """
        total = sum(nbytes)
        shares = [0.0]
        for size in nbytes:
            shares.append(shares[-1] + size / total)
        return [
            self._part(size, low, high)
            for size, low, high in zip(nbytes, shares[:-1], [*shares[1:-1], 1.0], strict=True)
        ]

    def _part(self, size: float, low: float, high: float) -> Dense:
        def part() -> Dense:
            return Dense(None, size, Part(self, low, high))

        return recorded(part, part)

    def __repr__(self) -> str:
        content = "pending" if self._data is None else "x".join(map(str, self._data.shape))
        return f"Dense({content}, {self.nbytes:g} bytes)"


def _numbers(value: float | Dense) -> float | Tensor:
    return value.data if isinstance(value, Dense) else value


@final
class Part:
    """Consecutive entries of a value.

    Args:
        whole: the value.
        low: where the part begins, as a share of the entries.
        high: where it ends.
    """

    __slots__ = ("high", "low", "whole")

    def __init__(self, whole: Dense, low: float, high: float) -> None:
        self.whole = whole
        self.low = low
        self.high = high

    def compute(self) -> Tensor:
        """The entries, a view of the whole."""
        data = self.whole.data
        entries = data.shape[-1]
        return data[..., round(self.low * entries) : round(self.high * entries)]
