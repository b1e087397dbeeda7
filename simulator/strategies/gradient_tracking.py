"""Gradient tracking: each worker steps along its estimate of all workers' mean gradient, and gossips both.

Di Lorenzo and Scutari, "NEXT", 2016; Nedic, Olshevsky and Shi, "Achieving Geometric Convergence for
Distributed Optimization over Time-Varying Graphs", 2017 [both memory]: y' = W y + g' - g, x' =
W (x - lr y). Differences: x and y travel in one message; any optimiser makes the step along y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from simulator.strategies.base import Proc, Strategy

if TYPE_CHECKING:
    from simulator.worker import Worker


class GradientTracking(Strategy):
    """A step along the tracked gradient, and a mixing of models and trackers, in lock step."""

    needs_gossip: ClassVar[bool] = True

    kind: Literal["gradient_tracking"] = "gradient_tracking"

    def worker(self, w: Worker) -> Proc[None]:
        """Gradient, tracking, step, mixing."""
        x, opt = w.initial_model(), w.optimizer()
        mixed_y = g_before = None
        for _ in w.steps():
            g = yield from w.gradient(x)
            y = g if mixed_y is None or g_before is None else g + (mixed_y - g_before)
            g_before = g
            x, opt = w.apply(x, y, opt)
            mixed = yield from w.neighbour_mean(w.concat([x, y]))
            x, mixed_y = mixed.split((x.nbytes, y.nbytes))
            w.report(x)
