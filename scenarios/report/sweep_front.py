"""What cannot both be had: settings against two quantities, and those that none beats in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scenarios.report.figure import Figure, axis, colour, packed, plain
from scenarios.report.sweep_charts import unit_of, y_axis
from scenarios.report.sweeping import Sweeping
from scenarios.sweeps.settings import Setting, said, title

#: Quantities that vary by less than this share are no matter of choice.
LEAST_SPREAD = 0.01

#: Settings by which the work differs by more than this factor are compared per sample.
SAME_WORK = 1.05

#: What a run learns: of no matter where all runs end at the same target.
LEARNED = ("final_loss", "final_accuracy")

#: What may be traded, in order of preference; what is good in each; whether it grows with the work done.
TRADED = (
    ("cost_usd", "min", True), ("network_cost_usd", "min", False), ("energy_kwh", "min", True),
    ("time_to_target_s", "min", False), ("final_loss", "min", False), ("final_accuracy", "max", False),
    ("bytes_sent", "min", True), ("simulated_s", "min", True), ("samples_per_s", "max", False),
)  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A number of each setting.

    Attributes:
        name: of the axis, without the unit.
        metric: the key of the summary.
        sign: 1 if less is better, else -1.
        of: the number of a setting; None if it lacks it.
    """

    name: str
    metric: str
    sign: int
    of: Callable[[Setting], float | None]

    def cost(self, setting: Setting) -> float:
        """The less, the better."""
        value = self.of(setting)
        assert value is not None
        return self.sign * value


def trade_offs(sweeping: Sweeping) -> list[Figure]:
    """The first pair of quantities, one of which decides, that no one setting is best in.

    None in a sweep over cases: what befalls a cluster is nothing to choose.
    """
    if sweeping.about["cases"]:
        return []
    measure = sweeping.measure
    first = quantity(measure.metric, measure.goal)
    fixed_goal = measure.metric.endswith("to_target_s") or measure.metric == "samples_to_target"
    per_sample = not fixed_goal and _work_differs(sweeping.settings)
    for metric, goal, grows in TRADED:
        second = quantity(metric, goal, per_sample=per_sample and grows)
        known = [one for one in sweeping.settings if None not in (first.of(one), second.of(one))]
        if metric == measure.metric or (fixed_goal and metric in LEARNED):
            continue
        if len(known) > 2 and _varies(known, first) and _varies(known, second):
            front = pareto(known, first, second)
            if len(front) > 1:
                return [_front(sweeping, known, front, first, second)]
    return []


def quantity(metric: str, goal: str, *, per_sample: bool = False) -> Quantity:
    """A metric of the summary, or what a million samples take of it."""
    sign = 1 if goal == "min" else -1
    if not per_sample:
        return Quantity(title(metric), metric, sign, lambda one: one.mean(metric))

    def of(one: Setting) -> float | None:
        whole, samples = one.mean(metric), one.mean("samples_costed")
        return 1e6 * whole / samples if whole is not None and samples else None

    return Quantity(f"{title(metric)} per million samples", metric, sign, of)


def _work_differs(found: Sequence[Setting]) -> bool:
    samples = [value for one in found if (value := one.mean("samples_costed"))]
    return bool(samples) and max(samples) > SAME_WORK * min(samples)


def _varies(known: Sequence[Setting], one: Quantity) -> bool:
    costs = [one.cost(setting) for setting in known]
    return max(costs) - min(costs) > LEAST_SPREAD * max(map(abs, costs))


def pareto(found: Sequence[Setting], first: Quantity, second: Quantity) -> list[Setting]:
    """The settings that no other beats in one quantity without losing in the other, best in `first` first."""
    front: list[Setting] = []
    for one in sorted(found, key=lambda one: (first.cost(one), second.cost(one))):
        if not front or second.cost(one) < second.cost(front[-1]):
            front.append(one)
    return front


def _front(
    sweeping: Sweeping, known: Sequence[Setting], front: Sequence[Setting], first: Quantity, second: Quantity
) -> Figure:
    x, y = _Scaled.over(known, second), _Scaled.over(known, first)
    line = {
        "type": "scatter", "mode": "lines", "name": "not beaten", "hoverinfo": "skip",
        "x": packed(x.of(front)), "y": packed(y.of(front)),
        "line": {"color": "var(--muted)", "width": 1.5, "dash": "dot"},
    }  # fmt: skip
    traces: list[dict[str, Any]] = [line]
    for number, variant in enumerate(sweeping.variants):
        if ours := [one for one in known if one.variant == variant]:
            sizes = [13 if one in front else 7 for one in ours]
            edge = {"color": "var(--surface)", "width": 1}
            traces.append({
                "type": "scatter", "mode": "markers", "name": plain(variant),
                "x": packed(x.of(ours)), "y": packed(y.of(ours)),
                "marker": {"color": colour(number), "size": sizes, "opacity": 0.9, "line": edge},
                "customdata": [[plain(sweeping.named(one)), x.said(one), y.said(one)] for one in ours],
                "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}, %{customdata[2]}<extra></extra>",
            })  # fmt: skip
    layout = {
        "xaxis": axis(x.title, **y_axis(x.of(known).tolist())),
        "yaxis": axis(y.title, **y_axis(y.of(known).tolist())),
        "hovermode": "closest",
        "legend": {"traceorder": "normal"},
    }
    alt = f"{first.name} against {second.name}: {len(front)} of {len(known)} settings are beaten by none"
    return Figure("front", traces, layout, 440, alt)


@dataclass(frozen=True)
class _Scaled:
    """A quantity in the unit of its axis."""

    quantity: Quantity
    size: float
    title: str

    @classmethod
    def over(cls, known: Sequence[Setting], one: Quantity) -> _Scaled:
        size, unit = unit_of(one.metric, [abs(one.cost(setting)) for setting in known])
        return cls(one, size, f"{one.name}{unit}")

    def of(self, found: Sequence[Setting]) -> Any:
        return np.array([self.quantity.sign * self.quantity.cost(one) for one in found]) / self.size

    def said(self, setting: Setting) -> str:
        return said(self.quantity.metric, self.quantity.of(setting))
