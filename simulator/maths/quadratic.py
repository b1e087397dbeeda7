"""Quadratics, one per worker: elementwise arithmetic, the same bits in any company."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from simulator.fabric import FloatArray
from simulator.maths import Evaluation
from simulator.maths.task import DTYPES
from simulator.problems.batches import IntArray


class QuadraticTask:
    """f_i(x) = 1/2 sum_j a_ij (x_j - c_ij)^2.

    Args:
        curvatures: a, shape (n, d).
        optima: c, shape (n, d).
        dtype: `float32` or `float64`.
    """

    def __init__(self, curvatures: FloatArray, optima: FloatArray, dtype: str) -> None:
        self._a = torch.tensor(curvatures, dtype=DTYPES[dtype])
        self._c = torch.tensor(optima, dtype=DTYPES[dtype])

    def gradients(self, models: Sequence[Tensor], samples: IntArray, workers: Sequence[int]) -> Tensor:
        """a_i (x - c_i) for each model's worker i."""
        rows = list(workers)
        return self._a[rows] * (torch.stack(list(models)) - self._c[rows])

    def evaluate(self, model: Tensor, split: str) -> Evaluation:
        """Mean of all workers' functions at x, whatever the split."""
        return Evaluation(float(0.5 * (self._a * (model - self._c) ** 2).sum(1).mean()))
