"""Distributions of positive factors and times, drawn by inverse transform.

One implementation for all: `quantile` turns uniform numbers in (0, 1) into values, by numpy and scipy on
arrays, so that one worker and a vector of workers get the same bits. Each has a `mean`, and keeps it.

    >>> Lognormal(mean=2.0, sigma=0.3).mean
    2.0
    >>> TwoPoint(p=0.1, low=1.0, high=6.0).mean
    1.5
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from math import gamma as gamma_function
from math import log
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, PositiveFloat, ValidationInfo, model_validator
from scipy import special

from simulator.fabric import FloatArray
from simulator.samples import read_samples
from simulator.spec import Spec

Mean = Annotated[PositiveFloat, Field(description="expected value of the variable")]
Probability = Annotated[float, Field(ge=0, le=1)]


class _Distribution(Spec):
    """What all distributions can do."""

    @abstractmethod
    def quantile(self, u: FloatArray) -> FloatArray:
        """The values below which the shares `u` of all draws lie; any shape, elementwise, rising in `u`."""


class Constant(_Distribution):
    """Always `value`."""

    kind: Literal["constant"] = "constant"
    value: PositiveFloat = Field(description="the value every draw takes")

    @property
    def mean(self) -> float:
        """`value`."""
        return self.value

    def quantile(self, u: FloatArray) -> FloatArray:
        """`value` everywhere."""
        return np.full_like(u, self.value)


class Lognormal(_Distribution):
    """exp of a normal variable; `sigma` is that variable's standard deviation."""

    kind: Literal["lognormal"] = "lognormal"
    mean: Mean = 1.0
    sigma: float = Field(ge=0, le=10, description="standard deviation of the variable's logarithm")

    def quantile(self, u: FloatArray) -> FloatArray:
        """exp(mu + sigma z), with mu = log(mean) - sigma^2 / 2 so that the mean holds."""
        return np.asarray(np.exp(self.sigma * special.ndtri(u) + (log(self.mean) - self.sigma**2 / 2)))


class Gamma(_Distribution):
    """Gamma variable of shape 1 / cv^2; its inverse costs 0.4 us a draw, 20 times the lognormal's."""

    kind: Literal["gamma"] = "gamma"
    mean: Mean = 1.0
    cv: float = Field(gt=0, le=10, description="standard deviation over mean")

    def quantile(self, u: FloatArray) -> FloatArray:
        """Scale mean cv^2 times the inverse of the regularised incomplete gamma function."""
        shape = 1 / self.cv**2
        return np.asarray((self.mean / shape) * special.gammaincinv(shape, u))


class Pareto(_Distribution):
    """Heavy tail: P(X > x) = (least / x)^alpha, with least = mean (alpha - 1) / alpha."""

    kind: Literal["pareto"] = "pareto"
    mean: Mean = 1.0
    alpha: float = Field(gt=1, description="tail index; the variance is finite above 2")

    def quantile(self, u: FloatArray) -> FloatArray:
        """Least (1 - u)^(-1 / alpha)."""
        least = self.mean * (self.alpha - 1) / self.alpha
        return np.asarray(least * np.exp(np.log1p(-u) * (-1 / self.alpha)))


class Weibull(_Distribution):
    """P(X > x) = exp(-(x / scale)^shape), scale = mean / Gamma(1 + 1 / shape); shape 1 is the exponential."""

    kind: Literal["weibull"] = "weibull"
    mean: Mean = 1.0
    shape: float = Field(ge=0.05, le=1000, description="below 1 a heavier tail than the exponential's")

    def quantile(self, u: FloatArray) -> FloatArray:
        """Scale (-log(1 - u))^(1 / shape)."""
        scale = self.mean / gamma_function(1 + 1 / self.shape)
        return np.asarray(scale * np.power(-np.log1p(-u), 1 / self.shape))


class Exponential(_Distribution):
    """P(X > x) = exp(-x / mean)."""

    kind: Literal["exponential"] = "exponential"
    mean: Mean = 1.0

    def quantile(self, u: FloatArray) -> FloatArray:
        """-mean log(1 - u)."""
        return np.asarray(-self.mean * np.log1p(-u))


class TwoPoint(_Distribution):
    """`high` with probability `p`, else `low`."""

    kind: Literal["two_point"] = "two_point"
    p: Probability = Field(description="probability of `high`")
    low: PositiveFloat = 1.0
    high: PositiveFloat

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"found low {self.low} above high {self.high}, expected low <= high")
        return self

    @property
    def mean(self) -> float:
        """(1 - p) low + p high."""
        return (1 - self.p) * self.low + self.p * self.high

    def quantile(self, u: FloatArray) -> FloatArray:
        """`high` for the last share `p`."""
        return np.where(u > 1 - self.p, self.high, self.low)


class Empirical(_Distribution):
    """Draws from measured values, all equally likely.

    `file` is read relative to the `folder` of the validation context (the scenario file's), or else to the
    working folder, and kept as an absolute path.
    """

    kind: Literal["empirical"] = "empirical"
    file: str = Field(description="CSV with one number a line, or a YAML or JSON list")

    @model_validator(mode="before")
    @classmethod
    def _absolute(cls, data: object, info: ValidationInfo) -> object:
        if isinstance(data, dict) and isinstance(data.get("file"), str):
            folder = Path((info.context or {}).get("folder", "."))
            return {**data, "file": str((folder / data["file"]).resolve())}
        return data

    @model_validator(mode="after")
    def _readable(self) -> Self:
        read_samples(self.file)
        return self

    @cached_property
    def values(self) -> FloatArray:
        """The measured values in rising order, shape (k,)."""
        return np.array(read_samples(self.file))

    @property
    def mean(self) -> float:
        """Of the measured values."""
        return float(self.values.mean())

    def quantile(self, u: FloatArray) -> FloatArray:
        """The value at rank floor(u k)."""
        rank = np.minimum((u * len(self.values)).astype(np.int64), len(self.values) - 1)
        return np.asarray(self.values[rank])


Distribution = Annotated[
    Constant | Lognormal | Gamma | Pareto | Weibull | Exponential | TwoPoint | Empirical,
    Field(discriminator="kind"),
]
"""Any distribution, told apart by `kind`."""
