"""Timing only: values are sizes, every operation is free, nothing is learned."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.compression import Compression, Stream
from simulator.maths import BoolArray
from simulator.values import Ghost, Vector


class GhostMaths:
    """The maths of a run without numbers.

    Args:
        value_bytes: size of a model or gradient on the wire.
        batch: samples a gradient counts for.
        train_samples: samples of one epoch, 0 if unknown.
    """

    metrics: tuple[str, ...] = ()

    def __init__(self, value_bytes: float, batch: int = 0, train_samples: int = 0) -> None:
        self.batch = batch
        self.train_samples = train_samples
        self._ghost = Ghost(value_bytes)

    def initial(self) -> Ghost:
        """The one ghost."""
        return self._ghost

    def gradient(self, x: Vector, worker: int, draw: int) -> Vector:
        """A ghost of the model's size."""
        return self._ghost

    def gradients(self, x: Vector, draw: int) -> Vector:
        """A ghost of the model's size."""
        return self._ghost

    def cancel(self, value: Vector) -> None:
        """Nothing is pending."""

    def mean(self, values: Sequence[Vector], weights: Sequence[float] | None = None) -> Vector:
        """The first: all have one size."""
        return values[0]

    def cohort_mean(self, x: Vector, keep: BoolArray | None = None) -> Vector:
        """Itself: a ghost has no worker axis."""
        return x

    def compressed_mean(
        self,
        how: Compression,
        stream: Stream,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> Vector:
        """The first: codes are sizes too, and told apart by who sends them."""
        return values[0]

    def concat(self, parts: Sequence[Vector]) -> Vector:
        """A ghost as large as the parts together."""
        return Ghost(sum(part.nbytes for part in parts))

    def row(self, x: Vector, worker: int) -> Vector:
        """Itself."""
        return x

    def stack(self, rows: Sequence[Vector]) -> Vector:
        """The first: a ghost has no worker axis."""
        return rows[0]

    def evaluate(self, x: Vector, split: str) -> None:
        """Nothing is learned."""

    def evaluate_each(self, values: Sequence[Vector] | Vector, split: str) -> None:
        """Nothing is learned."""

    def distance(self, values: Sequence[Vector] | Vector) -> None:
        """Nothing differs."""
