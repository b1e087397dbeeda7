"""Linear models of many workers at once: margins, slopes of the loss, and their pull-back to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from simulator.fabric import FloatArray
from simulator.maths import Evaluation, stacked
from simulator.maths.task import DTYPES
from simulator.problems.batches import IntArray
from simulator.problems.linear import Metric, Rows


class LinearTask:
    """P(w) = mean_i phi_i(x_i w) + l2/2 |w|^2.

    Args:
        rows: samples.
        features: entries of the model.
        loss: phi: `squared`, 1/2 (z - y)^2; `logistic`, log(1 + exp(-y z)).
        l2: weight of the penalty.
        metric: what an evaluation calls loss.
        dtype: `float32` or `float64`; evaluations are made in float64.
    """

    def __init__(
        self,
        rows: Rows,
        features: int,
        loss: Literal["squared", "logistic"],
        l2: float,
        metric: Metric,
        dtype: str,
    ) -> None:
        self._rows, self._features = rows, features
        self._logistic, self._l2, self._metric = loss == "logistic", l2, metric
        self._values = torch.tensor(rows.values, dtype=DTYPES[dtype])
        self._targets = torch.tensor(rows.targets, dtype=DTYPES[dtype])
        self._columns = None if rows.columns is None else torch.from_numpy(rows.columns)

    def gradients(self, models: Sequence[Tensor], samples: IntArray, workers: Sequence[int]) -> Tensor:
        """See `Task`."""
        chosen = torch.from_numpy(samples)
        flat = stacked.models(models)
        compute = self._dense if self._columns is None else self._sparse
        slopes = compute(flat, chosen)
        return slopes.add_(flat * self._l2) if self._l2 else slopes

    def _dense(self, flat: Tensor, chosen: Tensor) -> Tensor:
        values = stacked.aligned(self._values[chosen])
        margins = stacked.product(values, stacked.aligned(flat.unsqueeze(2))).squeeze(2)
        weights = stacked.aligned(self._slope(margins, chosen).unsqueeze(1))
        return stacked.product(weights, values).squeeze(1)

    def _sparse(self, flat: Tensor, chosen: Tensor) -> Tensor:
        assert self._columns is not None
        columns = self._columns[chosen].flatten(1)
        values = self._values[chosen]
        margins = (flat.gather(1, columns).view_as(values) * values).sum(2)
        weights = self._slope(margins, chosen).unsqueeze(2)
        return torch.zeros(flat.shape, dtype=flat.dtype).scatter_add_(
            1, columns, (values * weights).flatten(1)
        )

    def _slope(self, margins: Tensor, chosen: Tensor) -> Tensor:
        """Slope of the mean loss by the margins, shape (k, batch)."""
        targets = self._targets[chosen]
        slope = -targets * stacked.sigmoid(-targets * margins) if self._logistic else margins - targets
        return slope / chosen.shape[1]

    def evaluate(self, model: Tensor, split: str) -> Evaluation:
        """The metric over all samples, whatever the split, and for classes the share told rightly."""
        w = np.asarray(model.double().numpy())
        with np.errstate(all="ignore"):  # a diverging run ends in infinities, not in warnings
            margins, y = self._rows.margins(w), self._rows.targets
            right = float(np.mean((margins > 0) == (y > 0))) if self._logistic else None
            return Evaluation(self._measured(w, margins, y), right)

    def _measured(self, w: FloatArray, margins: FloatArray, y: FloatArray) -> float:
        losses = np.logaddexp(0.0, -y * margins) if self._logistic else 0.5 * (margins - y) ** 2
        primal = float(losses.mean() + 0.5 * self._l2 * w @ w)
        if self._metric == "loss":
            return float(losses.mean())
        return primal if self._metric == "primal" else max(primal - self._dual(margins, y), 0.0)

    def _dual(self, margins: FloatArray, y: FloatArray) -> float:
        """Dual objective at alpha_i = -phi_i'(margin): a lower bound of P.

        Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent methods", JMLR 2013, equation (2):
        D(alpha) = -1/N sum_i phi_i*(-alpha_i) - l2/2 |1/(l2 N) sum_i alpha_i x_i|^2.
        """
        from scipy.special import expit, xlogy

        if self._logistic:
            share = expit(-y * margins)
            alpha, conjugate = y * share, xlogy(share, share) + xlogy(1 - share, 1 - share)
        else:
            alpha = y - margins
            conjugate = 0.5 * alpha**2 - alpha * y
        implied = self._rows.weighted_sum(alpha, self._features) / (self._l2 * len(y))
        return float(-conjugate.mean() - 0.5 * self._l2 * implied @ implied)


@dataclass(frozen=True)
class TwoFiles:
    """Gradients on training samples, evaluations on others as well.

    Attributes:
        train, test: the same model on each of both.
    """

    train: LinearTask
    test: LinearTask

    def gradients(self, models: Sequence[Tensor], samples: IntArray, workers: Sequence[int]) -> Tensor:
        """See `Task`."""
        return self.train.gradients(models, samples, workers)

    def evaluate(self, model: Tensor, split: str) -> Evaluation:
        """The metric over the samples of the split."""
        return (self.test if split == "test" else self.train).evaluate(model, split)
