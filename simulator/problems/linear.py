"""Linear models on generated data, with a known optimum: what regression and classification share.

Objective: P(w) = 1/N sum_i phi_i(x_i w) + l2/2 |w|^2. There is no test split: `test` is `train`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np
from pydantic import NonNegativeFloat, PositiveInt, model_validator

from simulator.fabric import FloatArray
from simulator.problems.base import Layer, SyntheticProblem
from simulator.problems.batches import IntArray
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["LinearProblem", "Metric", "Rows", "dense_rows"]

Metric = Literal["loss", "primal", "duality_gap"]


class Rows(NamedTuple):
    """Samples of a linear model.

    Attributes:
        values: features, shape (samples, features); of sparse rows the non-zeros (samples, most), zeros
        behind them. targets: shape (samples,). columns: of sparse rows which feature each value is, shape
        of `values`; None if dense.
    """

    values: FloatArray
    targets: FloatArray
    columns: IntArray | None = None

    def margins(self, model: FloatArray) -> FloatArray:
        """x_i w of every sample, shape (samples,)."""
        if self.columns is None:
            return np.asarray(self.values @ model)
        return np.asarray((self.values * model[self.columns]).sum(1))

    def weighted_sum(self, weights: FloatArray, features: int) -> FloatArray:
        """sum_i weight_i x_i, shape (features,)."""
        if self.columns is None:
            return np.asarray(weights @ self.values)
        spread = (self.values * weights[:, None]).ravel()
        return np.asarray(np.bincount(self.columns.ravel(), spread, features), dtype=np.float64)


class LinearProblem(SyntheticProblem):
    """What the linear problems share.

    Attributes:
        n_samples: training samples.
        features: entries of the model.
        l2: weight of the quadratic penalty, part of every gradient.
        metric: what `loss` says: the mean loss, the objective with its penalty, or a bound on its excess.
    """

    n_samples: PositiveInt
    features: PositiveInt
    l2: NonNegativeFloat
    metric: Metric = "loss"

    @model_validator(mode="after")
    def _gap_needs_penalty(self) -> Self:
        if self.metric == "duality_gap" and not self.l2:
            raise ValueError(
                "found metric: duality_gap with l2: 0; expected l2 > 0 (the dual does not exist without)"
            )
        return self

    @property
    def parameters(self) -> int:
        """The features."""
        return self.features

    @property
    def samples(self) -> int:
        """Training samples."""
        return self.n_samples

    @property
    def row_entries(self) -> float:
        """Mean features that are not zero in a sample."""
        return float(self.features)

    def layers(self) -> tuple[Layer, ...]:
        """One product with the model."""
        return (Layer("linear", "matmul", self.features, 2.0 * self.row_entries, self.row_entries + 1),)

    def initial(self, draws: Draws) -> FloatArray:
        """Zeros: the customary start of convex problems."""
        return np.zeros(self.features)

    @abstractmethod
    def data(self) -> Rows:
        """The data; the same for equal specs."""

    @abstractmethod
    def optimum(self) -> FloatArray:
        """The minimiser of P, shape (features,)."""

    def task(self, dtype: str, n_workers: int) -> Task:
        """Stacked products of the batches with the models."""
        from simulator.maths.linear import LinearTask

        return LinearTask(self.data(), self.features, self.loss_kind, self.l2, self.metric, dtype)

    @property
    @abstractmethod
    def loss_kind(self) -> Literal["squared", "logistic"]:
        """The loss phi of one sample."""


def dense_rows(samples: int, features: int, condition: float, draws: Draws) -> FloatArray:
    """Normal features, (samples, features); second moments log-spaced from 1 / condition to 1."""
    from scipy.special import ndtri

    normal = ndtri(draws.block("linear/rows", 0, samples * features)).reshape(samples, features)
    return np.asarray(normal * np.sqrt(np.geomspace(1.0 / condition, 1.0, features)))
