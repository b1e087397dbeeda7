"""Linear regression: P(w) = 1/(2N) sum_i (x_i w - y_i)^2 + l2/2 |w|^2; ridge regression if l2 > 0."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, final

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.linear import LinearProblem, Rows, dense_rows
from simulator.streams import Draws

__all__ = ["LeastSquares"]


@final
class LeastSquares(LinearProblem):
    """Linear regression on normal features; targets are linear in them, with normal errors."""

    kind: Literal["least_squares"] = "least_squares"
    n_samples: PositiveInt = 500
    features: PositiveInt = 20
    l2: NonNegativeFloat = 0.0
    condition: float = Field(10.0, ge=1.0, description="largest over smallest second moment of a feature")
    target_noise: NonNegativeFloat = Field(0.1, description="standard deviation of the targets' errors")

    @property
    def loss_kind(self) -> Literal["squared"]:
        """Half the square."""
        return "squared"

    def labels(self) -> np.ndarray:
        """In which tenth of all targets a sample's lies."""
        targets = self.data().targets
        return np.searchsorted(np.quantile(targets, np.arange(1, 10) / 10), targets)

    def data(self) -> Rows:
        """Features, targets."""
        return _rows(self)

    def optimum(self) -> FloatArray:
        """By the normal equations."""
        x, y, _ = self.data()
        gram = x.T @ x / len(y) + self.l2 * np.eye(self.features)
        return np.asarray(np.linalg.solve(gram, x.T @ y / len(y)), dtype=np.float64)


@lru_cache(maxsize=4)
def _rows(spec: LeastSquares) -> Rows:
    from scipy.special import ndtri

    draws = Draws(spec.data_seed)
    x = dense_rows(spec.n_samples, spec.features, spec.condition, draws)
    truth = ndtri(draws.block("linear/truth", 0, spec.features))
    errors = spec.target_noise * ndtri(draws.block("linear/errors", 0, spec.n_samples))
    return Rows(x, x @ truth + errors)
