"""Learning-rate schedules: a factor on the optimiser's `lr`, as a function of the step t = 1, 2, ...

Every schedule may begin with a linear warm-up: t / warmup_steps times the schedule's own factor while t
is at most warmup_steps (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 2.2).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from simulator.spec import Spec

__all__ = ["Constant", "Cosine", "Piecewise", "Schedule", "ScheduleSpec"]


class Schedule(Spec):
    """What all schedules share."""

    warmup_steps: NonNegativeInt = 0

    @abstractmethod
    def shape(self, t: int) -> float:
        """The factor without the warm-up."""

    def factor(self, t: int) -> float:
        """What multiplies the learning rate at step t = 1, 2, ...

        >>> [Constant(warmup_steps=4).factor(t) for t in (1, 2, 4, 5)]
        [0.25, 0.5, 1.0, 1.0]
        """
        warm = t / self.warmup_steps if t < self.warmup_steps else 1.0
        return warm * self.shape(t)


class Constant(Schedule):
    """The learning rate as it is."""

    kind: Literal["constant"] = "constant"

    def shape(self, t: int) -> float:
        """Always 1."""
        return 1.0


class Piecewise(Schedule):
    """`values[i]` from step `at[i]` on.

    Before the first border the factor is 1; if `values` has one entry more than `at`, its first holds
    there.

    >>> steps = Piecewise(at=[30, 60], values=[0.1, 0.01])
    >>> [steps.factor(t) for t in (1, 29, 30, 60)]
    [1.0, 1.0, 0.1, 0.01]
    """

    kind: Literal["piecewise"] = "piecewise"
    at: tuple[PositiveInt, ...] = Field(description="steps at which the factor changes, ascending")
    values: tuple[NonNegativeFloat, ...] = Field(description="factors from these steps on")

    @model_validator(mode="after")
    def _matching(self) -> Self:
        if any(b <= a for a, b in zip(self.at, self.at[1:], strict=False)):
            raise ValueError(f"found at: {list(self.at)}; expected ascending steps")
        if len(self.values) - len(self.at) not in (0, 1):
            raise ValueError(
                f"found {len(self.values)} values for {len(self.at)} borders; expected one value a border, "
                "or one more for the steps before the first"
            )
        return self

    def shape(self, t: int) -> float:
        """The value of the last border passed."""
        values = self.values if len(self.values) > len(self.at) else (1.0, *self.values)
        return values[bisect_right(self.at, t)]


class Cosine(Schedule):
    """Half a cosine from 1 at the end of the warm-up to `final` at step `steps` (and from there on).

    Loshchilov and Hutter, "SGDR", 2017, equation (5), without restarts.
    """

    kind: Literal["cosine"] = "cosine"
    steps: PositiveInt = Field(description="step at which the decay ends")
    final: float = Field(0.0, ge=0.0, description="factor at the end")

    @model_validator(mode="after")
    def _longer_than_warmup(self) -> Self:
        if self.steps <= self.warmup_steps:
            raise ValueError(
                f"found steps: {self.steps}; expected more than warmup_steps: {self.warmup_steps}"
            )
        return self

    def shape(self, t: int) -> float:
        """1 until the warm-up ends, then down."""
        passed = min(max((t - self.warmup_steps) / (self.steps - self.warmup_steps), 0.0), 1.0)
        return self.final + (1.0 - self.final) * 0.5 * (1.0 + math.cos(math.pi * passed))


ScheduleSpec = Annotated[Constant | Piecewise | Cosine, Field(discriminator="kind")]
