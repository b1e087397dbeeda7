"""Gradients under way: computed together, when the first of them is looked at, on the models they began with.

A gradient's numbers are needed only once its simulated duration has passed. By then many workers'
gradients are under way, and one stacked computation serves them all. Values are immutable, so a reference
to the model is a snapshot of it; it is dropped when the numbers exist. A gradient that nobody holds any
more is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import final
from weakref import ref

import numpy as np
from torch import Tensor

from simulator.maths.dense import Dense
from simulator.problems.batches import IntArray

CHUNK = 64  # gradients computed at once: more does not pay, and their models must be held

Compute = Callable[[Sequence[Tensor], IntArray, Sequence[int], Sequence[int]], Tensor]


def chunks(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Numbers of the items in groups of at most `most` items of one size.

    >>> list(chunks([8, 8, 5, 8], most=2))
    [[0, 1], [3], [2]]
    """
    by_size: dict[int, list[int]] = {}
    for number, size in enumerate(sizes):
        by_size.setdefault(size, []).append(number)
    for same in by_size.values():
        for first in range(0, len(same), most):
            yield same[first : first + most]


@final
class Begun:
    """One gradient under way: the numbers it will be computed from."""

    __slots__ = ("draw", "model", "queue", "samples", "worker")

    def __init__(self, queue: Pending, model: Tensor, samples: IntArray, worker: int, draw: int) -> None:
        self.queue = queue
        self.model = model
        self.samples = samples
        self.worker = worker
        self.draw = draw

    def compute(self) -> Tensor:
        """Compute all that is pending, this one among it."""
        return self.queue.flush(self)


@final
class Pending:
    """The queue of gradients under way.

    Args:
        compute: gradients (k, d) of k models from (models, samples (k, batch), workers, draws).
        chunk: most gradients computed at once.
    """

    def __init__(self, compute: Compute, chunk: int = CHUNK) -> None:
        self._compute = compute
        self._chunk = chunk
        self._queue: list[ref[Dense]] = []

    def begin(self, model: Tensor, samples: IntArray, worker: int, draw: int, nbytes: float) -> Dense:
        """A gradient of the model as it is now, computed later."""
        value = Dense(None, nbytes, Begun(self, model, samples, worker, draw))
        self._queue.append(ref(value))
        return value

    def __len__(self) -> int:
        """Gradients that would be computed now."""
        return sum(1 for _ in self._live())

    def _live(self) -> list[tuple[Dense, Begun]]:
        values = (held() for held in self._queue)
        return [(v, v.source) for v in values if v is not None and isinstance(v.source, Begun)]

    def flush(self, asked: Begun) -> Tensor:
        """Compute everything pending, in chunks; returns the gradient asked for."""
        live = self._live()
        self._queue.clear()
        answer: Tensor | None = None
        for chunk in chunks([len(begun.samples) for _, begun in live], self._chunk):
            for number, row in zip(chunk, self._rows([live[i][1] for i in chunk]), strict=True):
                value, begun = live[number]
                value.settle(row)
                answer = row if begun is asked else answer
        assert answer is not None, "a gradient looked at is held, so it was in the queue"
        return answer

    def _rows(self, chunk: list[Begun]) -> Sequence[Tensor]:
        samples = np.stack([begun.samples for begun in chunk])
        workers, draws = [begun.worker for begun in chunk], [begun.draw for begun in chunk]
        return self._compute([begun.model for begun in chunk], samples, workers, draws).unbind()
