"""What a report shows, gathered from finished runs: one `Group` a variant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.compare import by_variant, pick, target_of
from scenarios.store import Run
from simulator.result import FRACTIONS, Coded, Column

FloatArray = NDArray[np.float64]

#: Charts draw this many variants at most; the table holds all.
MAX_VARIANTS = 10


@dataclass(frozen=True)
class Group:
    """The runs of one variant.

    Attributes:
        variant: its name.
        number: its place among the variants; decides its colour in every chart.
        runs: by seed. The first one stands for all in charts of single workers and links.
    """

    variant: str
    number: int
    runs: Sequence[Run]

    @property
    def first(self) -> Run:
        """The run shown where only one can be."""
        return self.runs[0]

    def mean(self, metric: str) -> float | None:
        """Mean of a summary key over seeds; None where a run lacks it."""
        values = [pick(run.summary, metric) for run in self.runs]
        there = [value for value in values if value is not None]
        return math.fsum(there) / len(there) if there and len(there) == len(values) else None

    def shares(self) -> list[float]:
        """Break-down of worker time, in the order of `FRACTIONS`, mean over seeds."""
        return [self.mean(name) or 0.0 for name in FRACTIONS]


@dataclass(frozen=True)
class Findings:
    """All that one report is about."""

    groups: Sequence[Group]

    @property
    def shown(self) -> Sequence[Group]:
        """The variants that charts draw."""
        return self.groups[:MAX_VARIANTS]

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The resolved scenario of the first run."""
        return self.groups[0].first.scenario

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for group in self.groups for run in group.runs]

    @property
    def target(self) -> Mapping[str, Any] | None:
        """The target of the scenario."""
        return target_of(self.scenario)

    @property
    def learns(self) -> bool:
        """Whether real maths was executed."""
        return any(run.summary.get("final_loss") is not None for run in self.runs)


def gather(runs: Sequence[Run]) -> Findings:
    """Group runs by variant, in order of appearance.

    Raises:
        InputError: two runs have one variant and one seed.
    """
    groups = by_variant(runs)
    return Findings([Group(name, number, ours) for number, (name, ours) in enumerate(groups.items())])


@dataclass(frozen=True)
class Curve:
    """An evaluation curve of one variant over its seeds on a common axis.

    Attributes:
        x: the axis, shape (points,).
        middle, low, high: mean, least and greatest over seeds, shape (points,); equal for one seed.
    """

    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray


#: A curve is drawn with at most this many points.
MAX_POINTS = 600


def curve_of(group: Group, axis: str, metric: str) -> Curve | None:
    """`metric` (loss, accuracy) of the method's model over `axis` (time_s, samples); None if not recorded."""
    lines = [line for run in group.runs if (line := _line(run, axis, metric)) is not None]
    if not lines:
        return None
    if len(lines) == 1:
        x, y = lines[0]
        return Curve(x, y, y, y)
    end = min(x[-1] for x, _ in lines)
    grid = _thinned(np.unique(np.concatenate([x[x <= end] for x, _ in lines])))
    values = np.stack([np.interp(grid, x, y) for x, y in lines])
    return Curve(grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def _thinned(values: FloatArray) -> FloatArray:
    if len(values) <= MAX_POINTS:
        return values
    rows = np.linspace(0, len(values) - 1, MAX_POINTS).astype(int)
    return np.asarray(values[rows])


def _line(run: Run, axis: str, metric: str) -> tuple[FloatArray, FloatArray] | None:
    columns = run.columns("curve", (axis, metric, "split", "model"))
    if columns is None or axis not in columns or metric not in columns:
        return None
    chosen = _is(columns["split"], _preferred(columns["split"], "test"))
    chosen &= _is(columns["model"], _preferred(columns["model"], "method"))
    x, y = (np.asarray(columns[name], dtype=float)[chosen] for name in (axis, metric))
    there = np.isfinite(x) & np.isfinite(y)
    if not there.any():
        return None
    rows = np.flatnonzero(there)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_POINTS)).astype(int)]
    return x[rows], y[rows]


def coded(column: Column) -> Coded:
    """A column of text as codes."""
    return column if isinstance(column, Coded) else Coded.of(str(value) for value in column)


def _preferred(column: Column, name: str) -> str:
    names = coded(column).names
    return name if name in names or not names else names[0]


def _is(column: Column, name: str) -> NDArray[np.bool_]:
    whole = coded(column)
    code = whole.names.index(name) if name in whole.names else -1
    return np.asarray(whole.codes == code)
