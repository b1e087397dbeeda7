"""A quadratic for each worker: exact gradients, known optimum; the test bed of identities.

f_i(x) = 1/2 sum_j a_ij (x_j - c_ij)^2 and f = mean_i f_i. The curvatures a_ij are spaced evenly in the
logarithm between 1/condition and 1 along j, times exp(spread (u_ij - 1/2)); the optima are c_ij = spread
z_ij, z standard normal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.base import Layer, Problem
from simulator.problems.batches import Batches, NoBatches
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["Quadratic"]


@final
class Quadratic(Problem):
    """Quadratics with an optimum and curvatures per worker; `spread: 0` makes all workers' functions one.

    A gradient is exact unless `noise` is set; it counts for `batch` samples, and n x `batch` samples are
    an epoch.
    """

    kind: Literal["quadratic"] = "quadratic"
    dimension: PositiveInt = 20
    condition: float = Field(10.0, ge=1.0, description="largest over smallest curvature")
    spread: NonNegativeFloat = Field(1.0, description="how unlike the workers' functions are")
    batch: PositiveInt = Field(1, description="samples a gradient counts for")
    data_seed: NonNegativeInt = Field(0, description="seed of the functions")

    @property
    def parameters(self) -> int:
        """The dimension."""
        return self.dimension

    def layers(self) -> tuple[Layer, ...]:
        """One product."""
        return (Layer("quadratic", "elementwise", self.dimension, 2.0 * self.dimension, 3 * self.dimension),)

    def train_size(self, n_workers: int) -> int:
        """One gradient of each worker."""
        return n_workers * self.batch

    def batch_size(self, n_workers: int) -> int:
        """`batch`."""
        return self.batch

    def batches(self, n_workers: int, draws: Draws) -> Batches:
        """There is nothing to draw."""
        return NoBatches()

    def initial(self, draws: Draws) -> FloatArray:
        """Standard normal entries."""
        from scipy.special import ndtri

        return np.asarray(ndtri(draws.block("initial", 0, self.dimension)))

    def functions(self, n_workers: int) -> tuple[FloatArray, FloatArray]:
        """Curvatures and optima, each of shape (n, d). A worker's do not depend on how many there are."""
        from scipy.special import ndtri

        draws, count = Draws(self.data_seed), n_workers * self.dimension
        shape = (n_workers, self.dimension)
        curvature = np.geomspace(1.0 / self.condition, 1.0, self.dimension)
        unlike = np.exp(self.spread * (draws.block("quadratic/curvature", 0, count) - 0.5)).reshape(shape)
        optima = self.spread * ndtri(draws.block("quadratic/optimum", 0, count)).reshape(shape)
        return curvature * unlike, optima

    def optimum(self, n_workers: int) -> tuple[FloatArray, float]:
        """Where the mean of the workers' functions is least, shape (d,), and its value there."""
        a, c = self.functions(n_workers)
        best = (a * c).sum(0) / a.sum(0)
        return best, float(0.5 * (a * (best - c) ** 2).sum(1).mean())

    def task(self, dtype: str, n_workers: int) -> Task:
        """Elementwise arithmetic."""
        from simulator.maths.quadratic import QuadraticTask

        return QuadraticTask(*self.functions(n_workers), dtype)
