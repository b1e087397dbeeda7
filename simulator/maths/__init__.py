"""What is really computed: values, gradients, means and evaluations behind one protocol.

`GhostMaths` (`ghost.py`) computes nothing and keeps the sizes; `TorchMaths` (`torch_maths.py`) trains a
real model. A training method never knows which of the two it runs with. This module imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.compression import Compression, Stream
from simulator.values import Vector

__all__ = ["BoolArray", "Evaluation", "Maths"]

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on one split of the data.

    Attributes:
        loss: value of the problem's `metric` (mean loss, primal objective or duality gap).
        accuracy: share of samples classified rightly; None where nothing is classified.
    """

    loss: float
    accuracy: float | None = None


class Maths(Protocol):
    """The numbers of a run. Values of one worker have shape (d,), of a cohort (n, d) or, if equal, (d,).

    Attributes:
        batch: samples that one gradient draws (0 where nothing is drawn).
        train_samples: samples of one epoch (0 where there are none).
        metrics: what an evaluation says: `loss`, or `loss` and `accuracy`; empty without a problem.
    """

    batch: int
    train_samples: int
    metrics: tuple[str, ...]

    def initial(self) -> Vector:
        """The model all workers start from, shape (d,); one object for all."""

    def gradient(self, x: Vector, worker: int, draw: int) -> Vector:
        """Gradient number `draw` (from 0) of one worker at `x` (d,), computed when first looked at."""

    def gradients(self, x: Vector, draw: int) -> Vector:
        """Gradient number `draw` of every worker at `x` (d,) or (n, d): shape (n, d), row = worker."""

    def cancel(self, value: Vector) -> None:
        """Forget a gradient that nobody will look at; looking at it afterwards is an error."""

    def mean(self, values: Sequence[Vector], weights: Sequence[float] | None = None) -> Vector:
        """(Weighted) mean of values of one shape, added up in the order given."""

    def cohort_mean(self, x: Vector, keep: BoolArray | None = None) -> Vector:
        """Mean over the worker axis, (n, d) -> (d,), of the workers in `keep` (n,) only if given."""

    def compressed_mean(
        self,
        how: Compression,
        stream: Stream,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> Vector:
        """(Weighted) mean of what arrives of the workers' values (d,); the stream remembers what does not."""

    def concat(self, parts: Sequence[Vector]) -> Vector:
        """The value that was split into `parts`."""

    def row(self, x: Vector, worker: int) -> Vector:
        """What one worker holds of a cohort's value: (n, d) or (d,) -> (d,)."""

    def stack(self, rows: Sequence[Vector]) -> Vector:
        """A cohort's value from every worker's own, in rank order: n times (d,) -> (n, d)."""

    def evaluate(self, x: Vector, split: str) -> Evaluation | None:
        """Quality of the model `x` (of the mean over workers, if it has a worker axis); None for ghosts.

        Args:
            x: shape (d,) or (n, d).
            split: `test` or `train`; problems without a test split use `train` for both.
        """

    def evaluate_each(self, values: Sequence[Vector] | Vector, split: str) -> Evaluation | None:
        """Mean over workers of the evaluations of their own models."""

    def distance(self, values: Sequence[Vector] | Vector) -> float | None:
        """Consensus distance: sqrt(mean_i |x_i - mean|^2) / |mean|; None for ghosts."""
