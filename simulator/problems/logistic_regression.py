"""Logistic regression: P(w) = 1/N sum_i log(1 + exp(-y_i x_i w)) + l2/2 |w|^2 with classes y_i = -1, 1."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, final

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.batches import IntArray
from simulator.problems.linear import LinearProblem, Rows, dense_rows
from simulator.streams import Draws

__all__ = ["LogisticRegression"]

MOST = 8  # longest sparse row, in mean rows


@final
class LogisticRegression(LinearProblem):
    """Two classes, linear in the features; dense rows, or sparse ones as in text.

    Sparse rows (`power_law`): the number of non-zeros has a Pareto tail (cut at 8 times the mean),
    features are popular by Zipf's law, and rows have length 1.
    """

    kind: Literal["logistic_regression"] = "logistic_regression"
    n_samples: PositiveInt = 2000
    features: PositiveInt = 50
    l2: NonNegativeFloat = 1e-3
    rows: Literal["dense", "power_law"] = Field("dense", description="dense or power_law")
    nonzeros: PositiveInt = Field(20, description="mean non-zeros of a sparse row, about")
    condition: float = Field(
        10.0, ge=1.0, description="largest over smallest second moment of a dense feature"
    )
    margin: PositiveFloat = Field(3.0, description="standard deviation of the true log-odds, about")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss and accuracy."""
        return ("loss", "accuracy")

    @property
    def loss_kind(self) -> Literal["logistic"]:
        """log(1 + exp(-margin))."""
        return "logistic"

    @property
    def row_entries(self) -> float:
        """Mean non-zeros of a row."""
        return float(self.features if self.rows == "dense" else self.nonzeros)

    def labels(self) -> np.ndarray:
        """The classes."""
        return self.data().targets

    def data(self) -> Rows:
        """Features, classes."""
        return _rows(self)

    def optimum(self) -> FloatArray:
        """By L-BFGS, to a gradient of 1e-10."""
        return _optimum(self)


@lru_cache(maxsize=4)
def _rows(spec: LogisticRegression) -> Rows:
    from scipy.special import expit, ndtri

    draws = Draws(spec.data_seed)
    if spec.rows == "dense":
        unlabelled = Rows(dense_rows(spec.n_samples, spec.features, spec.condition, draws), np.zeros(0))
    else:
        unlabelled = _sparse_rows(spec, draws)
    margins = unlabelled.margins(np.asarray(ndtri(draws.block("linear/truth", 0, spec.features))))
    likely = expit(spec.margin * margins / margins.std())
    classes = np.where(draws.block("linear/classes", 0, spec.n_samples) < likely, 1.0, -1.0)
    return unlabelled._replace(targets=classes)


def _sparse_rows(spec: LogisticRegression, draws: Draws) -> Rows:
    """Rows of Pareto length (exponent 2: mean = 2 x least) of features popular as 1 / rank."""
    most = min(MOST * spec.nonzeros, spec.features)
    lengths = np.ceil(spec.nonzeros / 2 / np.sqrt(draws.block("linear/lengths", 0, spec.n_samples)))
    popular = np.cumsum(1.0 / np.arange(1, spec.features + 1))
    u = draws.block("linear/columns", 0, spec.n_samples * most).reshape(-1, most)
    used = np.arange(most) < lengths[:, None]
    columns = np.where(used, np.searchsorted(popular, u * popular[-1]), spec.features)
    columns.sort(axis=1)  # unused places last
    used = columns < spec.features
    used[:, 1:] &= columns[:, 1:] != columns[:, :-1]  # a feature counts once a row
    values = used / np.sqrt(used.sum(1, keepdims=True))
    return Rows(values, np.zeros(0), _packed(columns, used))


def _packed(columns: IntArray, used: np.ndarray) -> IntArray:
    """Feature 0 where nothing is used: its value there is 0."""
    return np.where(used, columns, 0)


@lru_cache(maxsize=4)
def _optimum(spec: LogisticRegression) -> FloatArray:
    from scipy.optimize import minimize
    from scipy.special import expit

    rows = spec.data()
    y = rows.targets

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        margins = y * rows.margins(w)
        slope = rows.weighted_sum(-y * expit(-margins) / len(y), spec.features) + spec.l2 * w
        return float(np.logaddexp(0.0, -margins).mean() + 0.5 * spec.l2 * w @ w), slope

    found = minimize(
        objective,
        np.zeros(spec.features),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": 1e-10, "ftol": 1e-16, "maxiter": 10_000},
    )
    return np.asarray(found.x)
