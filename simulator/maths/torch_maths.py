"""Real maths: a problem's gradients, means and evaluations with torch, on one thread.

Sums over workers run in rank order, element by element, so a process's mean has the bits of a cohort's,
and a mean taken in parts those of a mean taken whole. The mean of equal values is that value, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from operator import is_

import numpy as np
import torch
from torch import Tensor

from simulator.compression import Compression, Stream
from simulator.maths import BoolArray, Evaluation
from simulator.maths.compressors import compressed
from simulator.maths.dense import Dense
from simulator.maths.pending import CHUNK, Pending, chunks
from simulator.maths.task import DTYPES
from simulator.problems.base import Problem
from simulator.problems.batches import IntArray
from simulator.streams import Draws
from simulator.values import Vector


class TorchMaths:
    """The maths of a run that learns.

    Args:
        problem: what is learned.
        n_workers: workers among whom the data are divided.
        draws: the run's draws.
        value_bytes: size of a model or gradient on the wire (of the model costed).
        dtype: `float32` or `float64`.
    """

    def __init__(
        self, problem: Problem, n_workers: int, draws: Draws, value_bytes: float, dtype: str = "float32"
    ) -> None:
        # Sums must not depend on the machine's cores, and small ones take longer on many.
        torch.set_num_threads(1)
        self.batch = problem.batch_size(n_workers)
        self.train_samples = problem.train_size(n_workers)
        self.metrics = problem.metrics
        self.n_workers = n_workers
        self.pending = Pending(self._compute)
        self._draws, self._noise = draws, problem.noise
        self._nbytes = value_bytes
        self._task = problem.task(dtype, n_workers)
        self._batches = problem.batches(n_workers, draws)
        start = torch.tensor(problem.initial(draws), dtype=DTYPES[dtype])
        self._initial = Dense(start, value_bytes)
        self._joined: tuple[tuple[Vector, ...], Dense] | None = None

    def initial(self) -> Dense:
        """See `Maths`."""
        return self._initial

    def gradient(self, x: Vector, worker: int, draw: int) -> Dense:
        """See `Maths`."""
        samples = self._batches.one(worker, draw)
        return self.pending.begin(_tensor(x), samples, worker, draw, self._nbytes)

    def gradients(self, x: Vector, draw: int) -> Dense:
        """See `Maths`."""
        data = _tensor(x)
        models = [data] * self.n_workers if data.dim() == 1 else list(data.unbind())
        samples = self._batches.all(draw, self.n_workers)
        slopes: list[Tensor] = [data] * self.n_workers
        for chunk in chunks([len(one) for one in samples], CHUNK):
            chosen = np.stack([samples[worker] for worker in chunk])
            rows = self._compute([models[w] for w in chunk], chosen, chunk, [draw] * len(chunk))
            if len(chunk) == self.n_workers:
                return Dense(rows, self._nbytes)
            for worker, row in zip(chunk, rows.unbind(), strict=True):
                slopes[worker] = row
        return Dense(torch.stack(slopes), self._nbytes)

    def _compute(
        self, models: Sequence[Tensor], samples: IntArray, workers: Sequence[int], draws: Sequence[int]
    ) -> Tensor:
        slopes = self._task.gradients(models, samples, workers)
        if self._noise:
            for row, worker, draw in zip(slopes, workers, draws, strict=True):
                row.add_(self._gaussian(worker, draw, len(row)).to(row.dtype))
        return slopes

    def _gaussian(self, worker: int, draw: int, d: int) -> Tensor:
        """Noise of one gradient, shape (d,)."""
        from scipy.special import ndtri

        return torch.from_numpy(self._noise * ndtri(self._draws.block("noise", draw, d, worker * d)))

    def cancel(self, value: Vector) -> None:
        """See `Maths`."""
        if isinstance(value, Dense) and value.pending:
            value.settle(None)

    def mean(self, values: Sequence[Vector], weights: Sequence[float] | None = None) -> Dense:
        """See `Maths`."""
        return Dense(_mean([_tensor(value) for value in values], weights), values[0].nbytes)

    def cohort_mean(self, x: Vector, keep: BoolArray | None = None) -> Dense:
        """See `Maths`."""
        data = _tensor(x)
        if data.dim() == 1:
            return Dense(data, x.nbytes)
        return Dense(_mean(data if keep is None else data[torch.from_numpy(keep)]), x.nbytes)

    def compressed_mean(
        self,
        how: Compression,
        stream: Stream,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> Vector:
        """See `Maths`."""
        return stream.take(how, ranks, self.outcomes(how, stream, ranks, values, weights))

    def outcomes(
        self,
        how: Compression,
        stream: Stream,
        ranks: Sequence[int],
        values: Sequence[Vector],
        weights: Sequence[float] | None,
    ) -> list[Dense]:
        """What a stream takes from a use: see `Stream.take`."""
        found = compressed(how, stream, ranks, [_tensor(v) for v in values], weights, self._draws)
        tensors = [_mean(found.arrived, weights), *found.left]
        if found.basis is not None:
            tensors.append(found.basis)
        return [Dense(tensor, values[0].nbytes) for tensor in tensors]

    def concat(self, parts: Sequence[Vector]) -> Dense:
        """See `Maths`. Parts that are the same objects as at the last call give the same object."""
        asked = tuple(parts)
        kept = self._joined
        if kept is None or len(kept[0]) != len(asked) or not all(map(is_, kept[0], asked)):
            data = torch.cat([_tensor(part) for part in asked], dim=-1)
            kept = self._joined = (asked, Dense(data, sum(part.nbytes for part in asked)))
        return kept[1]

    def row(self, x: Vector, worker: int) -> Dense:
        """See `Maths`."""
        data = _tensor(x)
        return Dense(data if data.dim() == 1 else data[worker], x.nbytes)

    def stack(self, rows: Sequence[Vector]) -> Dense:
        """See `Maths`."""
        return Dense(torch.stack([_tensor(row) for row in rows]), self._nbytes)

    def evaluate(self, x: Vector, split: str) -> Evaluation:
        """See `Maths`."""
        return self._task.evaluate(self.cohort_mean(x).data, split)

    def evaluate_each(self, values: Sequence[Vector] | Vector, split: str) -> Evaluation:
        """See `Maths`."""
        models = _rows(values)
        once = {id(model): model for model in models}
        known = {key: self._task.evaluate(model, split) for key, model in once.items()}
        told = [known[id(model)] for model in models]
        right = [one.accuracy for one in told if one.accuracy is not None]
        loss = float(np.mean([one.loss for one in told]))
        return Evaluation(loss, float(np.mean(right)) if right else None)

    def distance(self, values: Sequence[Vector] | Vector) -> float:
        """See `Maths`; 0 where all agree, even at 0."""
        rows = [row.double() for row in _rows(values)]
        mean = _mean(rows)
        apart = sqrt(sum(float((row - mean).square().sum()) for row in rows) / len(rows))
        size = float(mean.norm())
        return (apart / size if size else inf) if apart else 0.0


def _tensor(value: Vector) -> Tensor:
    if not isinstance(value, Dense):
        raise TypeError(f"a run with a problem computes with dense values, not with {value!r}")
    return value.data


def _rows(values: Sequence[Vector] | Vector) -> Sequence[Tensor]:
    """One tensor (d,) per worker."""
    if isinstance(values, Vector):
        data = _tensor(values)
        return [data] if data.dim() == 1 else data.unbind()
    return [_tensor(value) for value in values]


def _mean(rows: Sequence[Tensor] | Tensor, weights: Sequence[float] | None = None) -> Tensor:
    """Mean of tensors of one shape, added up in the order given."""
    first = rows[0]
    if all(rows[i] is first or torch.equal(rows[i], first) for i in range(1, len(rows))):
        return first
    total = _sum(rows, weights)
    return total.div_(len(rows) if weights is None else sum(weights))


def _sum(rows: Sequence[Tensor] | Tensor, weights: Sequence[float] | None) -> Tensor:
    """Sum in order: NumPy adds row after row (torch does not), except where rows are single numbers."""
    total: Tensor | None = None
    for begin in range(0, len(rows), CHUNK):
        chunk = rows[begin : begin + CHUNK]
        some = chunk if isinstance(chunk, Tensor) else torch.stack(list(chunk))
        if weights is not None:
            factors = torch.tensor(weights[begin : begin + CHUNK], dtype=some.dtype)
            some = some * factors.view(-1, *[1] * (some.dim() - 1))
        if total is not None:
            some = torch.cat([total.unsqueeze(0), some])
        numbers = some.numpy()
        with np.errstate(all="ignore"):  # a diverging run ends in infinities, not in warnings
            summed = np.add.reduce(numbers, 0) if some[0].numel() > 1 else np.cumsum(numbers, 0)[-1]
        total = torch.from_numpy(summed)
    assert total is not None, "a mean of nothing"
    return total
