"""Equal tuning: the best value of a key, for each variant and setting, over the same values and seeds.

Of the candidates the one is best whose runs lack the metric least often (never reached, diverged, failed);
of those equal in this, the one with the best mean. A best value at the end of a list of numbers says that
the list should be longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.compare import interval
from scenarios.study import Best
from scenarios.sweeps.table import Row


@dataclass(frozen=True)
class Candidate:
    """One value of the key tuned, within one group.

    Attributes:
        value: of the key.
        numbers: the metric of the runs that have one.
        runs: all of them, those that were left out apart.
    """

    value: Any
    numbers: Sequence[float]
    runs: int

    @property
    def mean(self) -> float | None:
        """Mean of the metric over the runs that have one."""
        return math.fsum(self.numbers) / len(self.numbers) if self.numbers else None

    def as_json(self) -> dict[str, Any]:
        """As part of `best`."""
        around = interval(self.numbers) if self.numbers else None
        return {
            "value": self.value, "mean": self.mean, "ci_low": around and around.low,
            "ci_high": around and around.high, "runs": self.runs, "without": self.runs - len(self.numbers),
        }  # fmt: skip


def best_of(rows: Sequence[Row], best: Best, values: Sequence[Any]) -> dict[str, Any]:
    """The best value of `best.by` in each group of `best.within`, as `sweep --json` has it.

    Args:
        rows: of the sweep.
        best: what is tuned.
        values: of the key tuned, in the order of the file.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["status"] != "skipped":
            groups.setdefault(tuple(row[key] for key in best.within), []).append(row)
    choices = [
        {**dict(zip(best.within, group, strict=True)), **_choice(ours, best, values)}
        for group, ours in groups.items()
    ]
    return {**best.model_dump(mode="json"), "choices": choices}


def _choice(rows: Sequence[Row], best: Best, values: Sequence[Any]) -> dict[str, Any]:
    by_value: dict[Any, list[Row]] = {}
    for row in rows:
        by_value.setdefault(row[best.by], []).append(row)
    candidates = [_candidate(value, ours, best.metric) for value, ours in by_value.items()]
    chosen = min(candidates, key=lambda one: _rank(one, best.goal))
    found = chosen.mean is not None
    kept = {key: value for key, value in chosen.as_json().items() if key != "value"}
    return {
        best.by: chosen.value if found else None,
        **kept,
        "at_end": found and _at_end(chosen.value, values),
        "candidates": [one.as_json() for one in candidates],
    }


def _candidate(value: Any, rows: Sequence[Row], metric: str) -> Candidate:
    numbers = [float(row[metric]) for row in rows if is_number(row.get(metric))]
    return Candidate(value, numbers, len(rows))


def is_number(value: Any) -> bool:
    """Whether a cell of the table is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _rank(one: Candidate, goal: str) -> tuple[int, float]:
    if one.mean is None:
        return one.runs, math.inf
    return one.runs - len(one.numbers), one.mean if goal == "min" else -one.mean


def _at_end(value: Any, values: Sequence[Any]) -> bool:
    """Whether a value is the least or greatest of at least three numbers."""
    numbers = sorted(one for one in values if is_number(one))
    return len(numbers) > 2 and is_number(value) and value in (numbers[0], numbers[-1])
