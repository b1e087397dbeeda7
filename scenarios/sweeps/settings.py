"""The rows of a sweep by setting: one variant at one point, over its seeds. And what decides between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.compare import target_of
from scenarios.sweeps.best import is_number
from scenarios.sweeps.table import Row
from scenarios.words import nbytes, number, percent, seconds


@dataclass(frozen=True)
class Setting:
    """One variant at one point.

    Attributes:
        variant: its name.
        values: swept key -> cell of the table.
        rows: one a seed.
    """

    variant: str
    values: Mapping[str, Any]
    rows: Sequence[Row]

    def numbers(self, metric: str) -> list[float]:
        """The metric of the runs that have one."""
        return [float(row[metric]) for row in self.rows if is_number(row.get(metric))]

    def mean(self, metric: str) -> float | None:
        """Mean over seeds; None where a run lacks it."""
        there = self.numbers(metric)
        return math.fsum(there) / len(there) if there and len(there) == len(self.rows) else None

    @property
    def status(self) -> str:
        """done, or what the worst of its runs is."""
        found = {str(row["status"]) for row in self.rows}
        return next(status for status in ("failed", "skipped", "done") if status in found)


def settings(rows: Sequence[Row], keys: Sequence[str]) -> list[Setting]:
    """The settings of a table, in its order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["variant"], *(row[key] for key in keys)), []).append(row)
    return [
        Setting(place[0], dict(zip(keys, place[1:], strict=True)), ours) for place, ours in groups.items()
    ]


@dataclass(frozen=True)
class Measure:
    """What decides: a number of the summary, and which way."""

    metric: str
    goal: str

    @property
    def better(self) -> str:
        """In a word."""
        return "lower is better" if self.goal == "min" else "higher is better"


def measure_of(
    best: Mapping[str, Any] | None, scenario: Mapping[str, Any] | None, rows: Sequence[Row]
) -> Measure:
    """The metric that the sweep tunes by; else the time to the target, the loss, or the speed."""
    if best:
        return Measure(str(best["metric"]), str(best["goal"]))
    if scenario and target_of(scenario):
        return Measure("time_to_target_s", "min")
    if any(is_number(row.get("final_loss")) for row in rows):
        return Measure("final_loss", "min")
    wasted = any(row.get("samples_wasted") and is_number(row.get("useful_samples_per_s")) for row in rows)
    return Measure("useful_samples_per_s" if wasted else "samples_per_s", "max")


def said(metric: str, value: float | None, missing: str = "-") -> str:
    """A number of the summary with its unit.

    >>> said("time_to_target_s", 75.0), said("waiting_fraction", 0.5), said("bytes_sent", 2e9)
    ('75 s', '50 %', '2 GB')
    """
    last = metric.rpartition(".")[2] if metric.startswith("band") else metric.partition(".")[0]
    if last.endswith("_s") and not last.endswith("per_s"):
        return seconds(value, missing)
    if last.startswith("bytes") or last.endswith("bytes"):
        return nbytes(value, missing)
    if last.endswith("fraction") or "accuracy" in last or last == "mfu":
        return percent(value, missing)
    return number(value, missing)


_TITLES = {
    "time_to_target_s": "time to target", "final_loss": "final loss", "final_accuracy": "accuracy",
    "samples_per_s": "samples/s", "useful_samples_per_s": "useful samples/s",
    "network_cost_usd": "network cost (USD)", "step_time_s.mean": "step", "waiting_fraction": "waiting",
    "exposed_communication_fraction": "exposed communication", "bytes_sent": "bytes sent",
    "cost_usd": "cost (USD)", "energy_kwh": "energy (kWh)", "simulated_s": "simulated",
    "samples_to_target": "samples to target",
}  # fmt: skip


def title(metric: str) -> str:
    """What a number of the summary is called."""
    return _TITLES.get(metric, metric)


def ranked(found: Sequence[Setting], measure: Measure) -> list[Setting]:
    """Settings that have the measure in every run, best first."""
    sign = 1 if measure.goal == "min" else -1
    known = [(value, one) for one in found if (value := one.mean(measure.metric)) is not None]
    return [one for _, one in sorted(known, key=lambda pair: sign * pair[0])]
