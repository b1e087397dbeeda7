"""Variants against a baseline: paired differences and ratios under common random numbers, with intervals.

Runs of equal seed meet the same stragglers and the same draws, so what counts is the difference within a
seed. Intervals are 95 %, Student's t over seeds: of the mean; of the mean difference; of the ratio through
the mean of the logarithms of the ratios (so that a factor and its inverse get inverse intervals). One seed
gives none. A run that never reached its target has no number: the mean and the ratio of its variant are null,
and `never` counts such seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simulator.errors import InputError
from simulator.validation import did_you_mean

if TYPE_CHECKING:
    from scenarios.store import Run

#: The metrics compared when none is asked for: summary keys, a dot reaches inside.
METRICS = (
    "time_to_target_s", "samples_to_target", "simulated_s", "step_time_s.mean", "samples_per_s",
    "exposed_communication_fraction", "waiting_fraction", "bytes_sent", "staleness_mean",
    "final_loss", "final_accuracy", "cost_usd",
)  # fmt: skip

#: Metrics that are null for a run that has a target and never reached it.
NEVER = ("time_to_target_s", "samples_to_target")

CONFIDENCE = 0.95
MAX_EXPONENT = 700.0

Values: TypeAlias = Mapping[int, float | None]  # seed -> value; None: never reached, or not there


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval; the ends are None with fewer than two values."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> list[float] | None:
        """`[low, high]`, None if there is no interval."""
        return None if self.low is None or self.high is None else [self.low, self.high]

    def exp(self) -> Interval:
        """The interval of the exponential; an end beyond all floats leaves no interval."""
        low, high = (
            None if end is None or end > MAX_EXPONENT else math.exp(end) for end in (self.low, self.high)
        )
        return Interval(math.exp(self.mean), low, high)


def interval(values: Sequence[float]) -> Interval:
    """Mean of independent values and Student's interval.

    >>> interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=-0.484..., high=4.484...)
    >>> interval([5.0])
    Interval(mean=5.0, low=None, high=None)
    """
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Interval(mean)
    return _student(mean, float(np.std(values, ddof=1)) / math.sqrt(len(values)), len(values) - 1)


def _student(mean: float, error: float, freedom: float) -> Interval:
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * error if error > 0 else 0.0
    return Interval(mean, mean - half, mean + half)


def difference(ours: Values, theirs: Values) -> tuple[Interval, bool] | None:
    """Mean of ours - theirs and whether it is paired by seed; None where a value lacks.

    Without a seed in common: the difference of the means with Welch's interval.
    """
    common = sorted(ours.keys() & theirs.keys())
    if common:
        pairs = [(ours[seed], theirs[seed]) for seed in common]
        gaps = [a - b for a, b in pairs if a is not None and b is not None]
        return (interval(gaps), True) if len(gaps) == len(pairs) else None
    a, b = _numbers(ours), _numbers(theirs)
    return (_welch(a, b), False) if a and b else None


def _numbers(values: Values) -> list[float]:
    """The values if all are there, else none."""
    there = [value for value in values.values() if value is not None]
    return there if len(there) == len(values) else []


def _welch(a: Sequence[float], b: Sequence[float]) -> Interval:
    gap = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2:
        return Interval(gap)
    u, v = float(np.var(a, ddof=1)) / len(a), float(np.var(b, ddof=1)) / len(b)
    if u + v == 0:
        return Interval(gap, gap, gap)
    freedom = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))
    return _student(gap, math.sqrt(u + v), freedom)


def ratio(ours: Values, theirs: Values) -> Interval | None:
    """Ours / theirs as a geometric mean over seeds; None where a value lacks or is not above zero."""
    if any(value is None or value <= 0 for side in (ours, theirs) for value in side.values()):
        return None
    logs = difference(_logarithms(ours), _logarithms(theirs))
    return None if logs is None else logs[0].exp()


def _logarithms(values: Values) -> Values:
    return {seed: math.log(value) for seed, value in values.items() if value}


def pick(summary: Mapping[str, Any], metric: str) -> float | None:
    """A number of a summary by dotted key; None if it is null or not there."""
    value: Any = summary
    for key in metric.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def by_variant(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Runs grouped by variant, in order of appearance.

    Raises:
        InputError: two runs have one variant and one seed.
    """
    groups: dict[str, dict[int, Run]] = {}
    for run in runs:
        group = groups.setdefault(run.variant, {})
        if run.seed in group:
            raise InputError(
                field=run.variant, expected="each variant and seed once",
                found=f"two runs of seed {run.seed}: {group[run.seed].path} and {run.path}",
            )  # fmt: skip
        group[run.seed] = run
    return {variant: list(group.values()) for variant, group in groups.items()}


def values_of(runs: Iterable[Run], metric: str) -> dict[int, float | None]:
    """A metric by seed."""
    return {run.seed: pick(run.summary, metric) for run in runs}


def has_target(runs: Iterable[Run]) -> bool:
    """Whether the scenario of any of the runs names a target."""
    return any(target_of(run.scenario) is not None for run in runs)


def target_of(scenario: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The target of a resolved scenario: what is given of it; None if there is none."""
    stop = scenario.get("stop")
    target = stop.get("target") if isinstance(stop, Mapping) else None
    if not isinstance(target, Mapping):
        return None
    return {key: value for key, value in target.items() if value is not None} or None


def compare(
    runs: Sequence[Run], *, baseline: str | None = None, metrics: Sequence[str] = ()
) -> dict[str, Any]:
    """The comparison as JSON; rows by metric, then variant, the baseline's own row first.

    Args:
        runs: finished runs, of several variants.
        baseline: the variant to compare against; the first by default.
        metrics: summary keys; `METRICS` as far as they apply by default.

    Raises:
        InputError: no such variant or metric.
    """
    groups = by_variant(runs)
    first = baseline if baseline is not None else next(iter(groups), "")
    if first not in groups:
        raise InputError(
            field="--baseline",
            found=repr(first),
            expected="one of " + ", ".join(groups),
            hint=did_you_mean(first, groups),
        )
    wanted = list(metrics) or [metric for metric in METRICS if _applies(metric, runs)]
    for metric in metrics:
        _check_metric(metric, runs)
    order = [first, *(variant for variant in groups if variant != first)]
    rows = [_row(metric, variant, groups[variant], groups[first]) for metric in wanted for variant in order]
    return {"baseline": first, "confidence": CONFIDENCE, "rows": rows}


def _applies(metric: str, runs: Sequence[Run]) -> bool:
    if metric in NEVER and has_target(runs):
        return True
    return any(pick(run.summary, metric) is not None for run in runs)


def _check_metric(metric: str, runs: Sequence[Run]) -> None:
    known = {name for run in runs for name in metric_names(run.summary)}
    if metric not in known:
        raise InputError(
            field="--metric",
            found=repr(metric),
            expected="a number of summary.json",
            hint=did_you_mean(metric, known),
        )


def metric_names(summary: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Names of all that is or could be a number in a summary, dotted."""
    names: list[str] = []
    for key, value in summary.items():
        if isinstance(value, Mapping):
            names += metric_names(value, f"{prefix}{key}.")
        elif value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            names.append(prefix + key)
    return names


def _row(metric: str, variant: str, runs: Sequence[Run], base: Sequence[Run]) -> dict[str, Any]:
    ours, theirs = values_of(runs, metric), values_of(base, metric)
    numbers = _numbers(ours)
    mean = interval(numbers) if numbers else None
    gap, factor = difference(ours, theirs), ratio(ours, theirs)
    never = sum(value is None for value in ours.values()) if metric in NEVER and has_target(runs) else 0
    return {
        "variant": variant,
        "metric": metric,
        "mean": mean.mean if mean else None,
        "ci_low": mean.low if mean else None,
        "ci_high": mean.high if mean else None,
        "ratio": factor.mean if factor else None,
        "ratio_ci": factor.ends if factor else None,
        "difference": gap[0].mean if gap else None,
        "difference_ci": gap[0].ends if gap else None,
        "seeds": len(ours),
        "paired": bool(ours.keys() & theirs.keys()),
        "never": never,
    }
