"""Local SGD: workers step apart and average their models every H steps.

Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019, Algorithm 1; Lin et al., "Don't Use
Large Mini-Batches, Use Local SGD", ICLR 2020 (post-local: synchronous until `start_step`); H per device
class as in biased local SGD. Differences: the model average is an all-reduce, not a server; optimiser states
stay local; the synchronous phase averages gradients in one bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class LocalSGD(Strategy):
    """h local steps, then one average over all workers."""

    kind: Literal["local_sgd"] = "local_sgd"
    h: PositiveInt = Field(8, description="local steps between averages")
    h_by_class: dict[str, PositiveInt] | None = Field(
        None,
        description="h by device class, `h` for others; `stop: steps` counts the steps of those with most",
    )
    start_step: int = Field(0, ge=0, description="synchronous SGD up to and including this step")
    weights: Literal["uniform", "steps"] = Field(
        "uniform", description="of the workers in the average; `steps`: by local steps taken since the last"
    )

    @model_validator(mode="after")
    def _one_kind_of_h(self) -> Self:
        if self.h_by_class is not None and not self.h_by_class:
            raise ValueError("found an empty h_by_class, expected an h for each device class")
        if self.h_by_class is not None and self.start_step:
            raise ValueError("found start_step with h_by_class, expected one of them: steps differ by class")
        return self

    def worker(self, w: Worker) -> Proc[None]:
        """Local steps; every h-th a mean of models."""
        h, most = self.h, self.h
        if self.h_by_class is not None:
            h = self.h_by_class.get(w.kind, self.h)
            most = max(self.h_by_class.get(kind, self.h) for kind in set(w.kinds))
        weight = float(h) if self.weights == "steps" else 1.0
        x, opt = w.initial_model(), w.optimizer()
        common = x
        for t in w.steps(pace=h / most):
            g = yield from w.gradient(x)
            if t <= self.start_step:
                g = yield from w.all_mean(g)
            x, opt = w.apply(x, g, opt)
            if t <= self.start_step:
                common = x
            elif (t - self.start_step) % h == 0:
                x = common = yield from w.all_mean(x, weight=weight, since=common)
            w.report(x)
