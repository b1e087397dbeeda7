"""Charts of a sweep over what was swept: lines over one axis, heat maps over two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from scenarios.report.charts import LOG_FROM, log_ticks
from scenarios.report.figure import COLOURS, Figure, axis, colour, dash, packed, plain, time_unit
from scenarios.report.sweeping import Axis, Sweeping
from scenarios.sweeps.points import as_text
from scenarios.sweeps.settings import Measure, Setting, said, title

#: Charts of one sweep, and cells of a heat map that have their number written in them.
MOST_CHARTS, MOST_NUMBERS = 12, 120

#: An axis of numbers that grow by at least this factor is logarithmic.
LOG_X_FROM = 8.0

#: From this share of the scale on, a cell is dark where the page is light.
DARK_FROM = 0.68


def tuned(sweeping: Sweeping) -> list[Figure]:
    """What each group comes to at its best value, where there are two kinds of groups."""
    if (axes := sweeping.tuned) is None:
        return []
    across, up = axes
    cells = {
        (row, column): sweeping.chosen({up.keys[0]: low[0], across.keys[0]: right[0]})
        for (row, low), (column, right) in product(enumerate(up.points), enumerate(across.points))
    }
    metric, by = sweeping.measure.metric, sweeping.best["by"]
    means = [mean for one in cells.values() if one and (mean := one.mean(metric)) is not None]
    if not means:
        return []
    scale = _Scale(min(means), max(means))
    remarks = {place: f" at {as_text(one.values[by])}" if one else "" for place, one in cells.items()}
    return [_Heat(sweeping.measure, cells, across, up, scale, "", remarks, True).figure("heat-tuned")]


def charts(sweeping: Sweeping) -> list[Figure]:
    """The measure over what was swept: heat maps over two axes, one for each point of all others."""
    if len(sweeping.drawn) < 2:
        return [_lines(sweeping, one) for one in sweeping.drawn]
    across, up, *rest = sweeping.drawn
    means = [mean for one in sweeping.settings if (mean := one.mean(sweeping.measure.metric)) is not None]
    if not means:
        return []
    scale = _Scale(min(means), max(means))
    found: list[Figure] = []
    for variant, fixed in product(sweeping.variants, product(*(one.points for one in rest))):
        cells = _cells(sweeping, variant, (across, up, *rest), fixed)
        if any(cells.values()) and len(found) < MOST_CHARTS:
            name = _heading(sweeping, variant, rest, fixed)
            found.append(_Heat(sweeping.measure, cells, across, up, scale, name).figure(f"heat-{len(found)}"))
    return found


def _heading(sweeping: Sweeping, variant: str, rest: Sequence[Axis], fixed: Sequence[tuple[Any, ...]]) -> str:
    pairs = zip(rest, fixed, strict=True)
    parts = [f"{one.title} {one.labels[list(one.points).index(point)]}" for one, point in pairs]
    return ", ".join([*([variant] if len(sweeping.variants) > 1 else []), *parts])


_Cells = Mapping[tuple[int, int], "Setting | None"]
"""(row, column) of a heat map -> the setting there."""


def _cells(
    sweeping: Sweeping, variant: str, axes: Sequence[Axis], fixed: Sequence[tuple[Any, ...]]
) -> _Cells:
    """The settings of a variant over the first two axes, at a point of the others."""
    there = {(one.variant, *one.values.values()): one for one in sweeping.settings}
    single = {k: v for one in sweeping.axes for k, v in zip(one.keys, one.points[0], strict=True)}
    cells = {}
    for (row, low), (column, right) in product(enumerate(axes[1].points), enumerate(axes[0].points)):
        values = dict(single)
        for one, point in zip(axes, (right, low, *fixed), strict=True):
            values |= dict(zip(one.keys, point, strict=True))
        cells[row, column] = there.get((variant, *(values[key] for key in sweeping.keys)))
    return cells


@dataclass(frozen=True)
class _Scale:
    """Colours common to all heat maps; logarithmic where the values span much."""

    least: float
    most: float

    def share(self, value: float) -> float:
        """Where a value is on the scale, from 0 to 1."""
        low, high, at = self.least, self.most, value
        if low > 0 and high / low > LOG_FROM:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return (at - low) / (high - low) if high > low else 0.5


@dataclass(frozen=True)
class _Heat:
    """One heat map.

    Attributes:
        measure: what the colours show.
        cells: the setting in each.
        across, up: the axes.
        scale: of the colours.
        name: heading.
        remarks: to be written behind the numbers.
        by_column: frame the best of each column instead of the best of all.
    """

    measure: Measure
    cells: _Cells
    across: Axis
    up: Axis
    scale: _Scale
    name: str
    remarks: Mapping[tuple[int, int], str] = field(default_factory=dict)
    by_column: bool = False

    def figure(self, place: str) -> Figure:
        """As a figure."""
        rows, columns = range(len(self.up.points)), range(len(self.across.points))
        means = {at: one.mean(self.measure.metric) if one else None for at, one in self.cells.items()}
        words = {at: self._words(at, mean) for at, mean in means.items()}
        shares = {at: None if mean is None else self.scale.share(mean) for at, mean in means.items()}
        hover = f"{plain(self.up.title)} %{{customdata[0]}}, {plain(self.across.title)} %{{customdata[1]}}"
        trace = {
            "type": "heatmap", "zmin": 0, "zmax": 1, "showscale": False, "xgap": 2, "ygap": 2,
            "z": [[shares[row, column] for column in columns] for row in rows],
            "text": [[words[row, column] for column in columns] for row in rows],
            "customdata": [[[y, x] for x in self.across.labels] for y in self.up.labels],
            "colorscale": [[0, "var(--heat0)"], [0.5, "var(--heat1)"], [1, "var(--heat2)"]],
            "hovertemplate": f"{hover}: %{{text}}<extra></extra>",
        }  # fmt: skip
        heading = {"text": plain(self.name), "font": {"size": 14}, "x": 0, "xref": "paper", "y": 1}
        layout = {
            "title": {**heading, "yref": "container", "yanchor": "top", "pad": {"t": 8}},
            "xaxis": axis(self.across.title, **_places(self.across)),
            "yaxis": axis(self.up.title, **_places(self.up, not self.up.ascends)),
            "hovermode": "closest", "shapes": self._frames(means),
            "annotations": _written(words, shares) if len(words) <= MOST_NUMBERS else [],
        }  # fmt: skip
        over = f"{title(self.measure.metric)} over {self.across.title} and {self.up.title}"
        alt = f"{over}{f' for {self.name}' if self.name else ''}"
        return Figure(place, [trace], layout, 120 + 46 * min(len(rows), 14), alt)

    def _words(self, at: tuple[int, int], mean: float | None) -> str:
        written = said(self.measure.metric, mean, self._why(at))
        return written + self.remarks.get(at, "") if mean is not None else written

    def _frames(self, means: _Means) -> list[dict[str, Any]]:
        """Frames round the best cells."""
        if not self.by_column:
            return _frame(means, self.measure)
        columns = [
            {at: mean for at, mean in means.items() if at[1] == n} for n in range(len(self.across.points))
        ]
        return [shape for column in columns for shape in _frame(column, self.measure)]

    def _why(self, place: tuple[int, int]) -> str:
        """Why a cell has no number."""
        setting = self.cells[place]
        if setting is None:
            return "left out"
        some = len(setting.numbers(self.measure.metric))
        return (
            "failed" if setting.status == "failed" else f"{some} of {len(setting.rows)}" if some else "never"
        )


def _places(one: Axis, down: bool = False) -> dict[str, Any]:
    """An axis of cells; `down` for names, which are read from the top."""
    places, ends = list(range(len(one.points))), [-0.5, len(one.points) - 0.5]
    return {
        "tickvals": places, "ticktext": one.labels, "range": ends[:: -1 if down else 1], "showgrid": False,
        "zeroline": False, "fixedrange": True,
    }  # fmt: skip


def _written(
    words: Mapping[tuple[int, int], str], shares: Mapping[tuple[int, int], float | None]
) -> list[dict[str, Any]]:
    """The number in each cell, in a colour that shows on it."""
    found = []
    for (row, column), word in words.items():
        share = shares[row, column]
        ink = "var(--muted)" if share is None else "var(--surface)" if share > DARK_FROM else "var(--text)"
        font = {"color": ink, "size": 12}
        found.append({"x": column, "y": row, "text": plain(word), "showarrow": False, "font": font})
    return found


_Means = Mapping[tuple[int, int], float | None]
"""(row, column) of a heat map -> the number there."""


def _frame(means: _Means, measure: Measure) -> list[dict[str, Any]]:
    """A frame round the best cell."""
    sign = 1 if measure.goal == "min" else -1
    there = [(sign * mean, place) for place, mean in means.items() if mean is not None]
    if len(there) < 2:
        return []
    row, column = min(there)[1]
    edges = {"x0": column - 0.47, "x1": column + 0.47, "y0": row - 0.46, "y1": row + 0.46}
    return [{"type": "rect", **edges, "line": {"color": "var(--text)", "width": 2.5}}]


def _lines(sweeping: Sweeping, across: Axis) -> Figure:
    measure, numbers = sweeping.measure, across.numbers
    x = numbers or [float(place) for place in range(len(across.points))]
    values = [value for one in sweeping.settings for value in one.numbers(measure.metric)]
    size, unit = unit_of(measure.metric, values)
    traces = [
        trace
        for number, variant in enumerate(sweeping.variants)
        for trace in _Line(sweeping, variant, across, x, size).traces(number)
    ]
    layout = {
        "xaxis": axis(across.title, tickvals=x, ticktext=across.labels, **_x_range(x, numbers is not None)),
        "yaxis": axis(f"{title(measure.metric)}{unit}", **y_axis([value / size for value in values])),
        "legend": {"traceorder": "normal"},
    }
    names = ", ".join(sweeping.variants[:COLOURS])
    alt = f"{title(measure.metric)} over {across.title}, one line each for {names}"
    return Figure("lines", traces, layout, 420, alt)


def _x_range(x: Sequence[float], numeric: bool) -> dict[str, Any]:
    """All that was swept, also where nothing came of it."""
    low, high = min(x), max(x)
    if numeric and low > 0 and high / low >= LOG_X_FROM:
        low, high = math.log10(low), math.log10(high)
        return {"type": "log", "range": [low - 0.05 * (high - low), high + 0.05 * (high - low)]}
    return {"range": [low - 0.05 * (high - low), high + 0.05 * (high - low)]}


def unit_of(metric: str, values: Sequence[float]) -> tuple[float, str]:
    """Size and name of the unit in which an axis shows a metric.

    >>> unit_of("bytes_sent", [2e9]), unit_of("time_to_target_s", [8.0]), unit_of("final_loss", [0.1])
    ((1000000000.0, ' (GB)'), (1.0, ' (s)'), (1.0, ''))
    """
    most, name = max(values, default=0.0), metric.partition(".")[0]
    if name.startswith("bytes"):
        sizes = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
        size, unit = next((pair for pair in sizes if most >= pair[0]), (1.0, "B"))
        return size, f" ({unit})"
    if name.endswith("_s") and not name.endswith("per_s"):
        size, unit = time_unit(most)
        return size, f" ({unit})"
    return 1.0, ""


def y_axis(values: Sequence[float]) -> dict[str, Any]:
    """An axis from zero, or a logarithmic one where the values span much."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low > 0 and high / low > LOG_FROM:
        return {"type": "log", **log_ticks(low, high)}
    return {"rangemode": "tozero"} if low >= 0 else {}


@dataclass(frozen=True)
class _Line:
    """The line of a variant, and the band from least to greatest seed behind it."""

    sweeping: Sweeping
    variant: str
    across: Axis
    x: Sequence[float]
    size: float

    def traces(self, number: int) -> Iterator[dict[str, Any]]:
        """Nothing where no run has the metric."""
        points = self._points()
        if not points:
            return
        metric, name = self.sweeping.measure.metric, plain(self.variant)
        each = [np.array(one.numbers(metric)) for _, one in points]
        x = packed(np.array([place for place, _ in points]))
        if any(len(values) > 1 for values in each):
            edge = {
                "type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "showlegend": False,
                "hoverinfo": "skip", "legendgroup": name,
            }  # fmt: skip
            yield {**edge, "y": packed(np.array([values.min() for values in each]) / self.size)}
            high = packed(np.array([values.max() for values in each]) / self.size)
            yield {**edge, "y": high, "fill": "tonexty", "fillcolor": colour(number, "band")}
        means = [float(values.mean()) for values in each]
        hollow = [len(values) < len(one.rows) for values, (_, one) in zip(each, points, strict=True)]
        yield {
            "type": "scatter", "mode": "lines+markers", "name": name, "legendgroup": name, "x": x,
            "y": packed(np.array(means) / self.size),
            "line": {"color": colour(number), "dash": dash(number), "width": 2},
            "marker": {"color": colour(number), "size": 8,
                       "symbol": ["circle-open" if one else "circle" for one in hollow]},
            "customdata": [said(metric, mean) for mean in means],
            "hovertemplate": "%{customdata}<extra>%{fullData.name}</extra>",
        }  # fmt: skip

    def _points(self) -> list[tuple[float, Setting]]:
        """Where a run has the metric, from left to right."""
        keys, metric = self.across.keys, self.sweeping.measure.metric
        ours = {
            tuple(one.values[key] for key in keys): one
            for one in self.sweeping.settings
            if one.variant == self.variant and one.numbers(metric)
        }
        there = ((x, ours.get(point)) for x, point in zip(self.x, self.across.points, strict=True))
        return sorted(((x, one) for x, one in there if one is not None), key=lambda pair: pair[0])
