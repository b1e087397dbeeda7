"""The drawing of a network for a page: marks for hosts and switches, lines for cables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from scenarios.report.figure import Figure, plain
from scenarios.words import plural
from simulator import units
from topologies.picture import Line, Mark, Picture

HOSTS = ("line0", "line3", "line8", "line6", "line4")
"""Colours of hosts, by what devices they hold."""
RATES = ("line1", "line4", "line5", "line2")
"""Colours of cables from the slowest to the fastest, where there are several speeds."""
MOST_LABELS = 40
"""Marks of a circle or grid up to which their names are written beside them."""
_LETTER, _WIDTH = 6.6, 1000.0  # pixels of a letter of a name, and of a drawing
_SAMPLES = 15  # points of a bent line


def network_figure(name: str, picture: Picture, title: str) -> Figure:
    """The figure of a picture; `name` is its place in the page."""
    traces = [*_line_traces(picture), *_mark_traces(picture)]
    x_axis: dict[str, Any] = {"visible": False}
    y_axis: dict[str, Any] = {"visible": False}
    if picture.round:
        y_axis |= {"scaleanchor": "x", "scaleratio": 1}
    else:
        x_axis |= {"range": [-0.04, 1.04]}
        top = max(mark.y for mark in picture.marks)
        y_axis |= {"range": [-0.55, top + 0.45]}
    layout = {
        "xaxis": x_axis,
        "yaxis": y_axis,
        "hovermode": "closest",
        "dragmode": "pan",
        "legend": {"traceorder": "normal", "itemsizing": "constant"},
    }
    hosts = sum(len(mark.names) for mark in picture.marks if mark.kind == "host")
    switches = sum(len(mark.names) for mark in picture.marks if mark.kind == "switch")
    cables = sum(picture.cables.values())
    alt = f"{title}: {hosts} hosts, {switches} switches, {cables} cables"
    return Figure(name, traces, layout, _height(picture), alt)


def _height(picture: Picture) -> int:
    if picture.round:
        x = [mark.x for mark in picture.marks]
        y = [mark.y for mark in picture.marks]
        wide, high = max(max(x) - min(x), 1e-9), max(y) - min(y)
        return int(min(max(1080 * high / wide + 120, 260), 720))
    return int(130 * (max(mark.y for mark in picture.marks) + 1) + 140)


# cables


def _line_traces(picture: Picture) -> list[dict[str, Any]]:
    """A trace for each speed and width of line, and one of points in the middle of lines to point at."""
    rates = sorted({(line.rate, line.latency) for line in picture.lines})
    widths = _widths(picture.lines)
    traces: list[dict[str, Any]] = []
    for number, (rate, latency) in enumerate(rates):
        own = [
            (line, widths[i])
            for i, line in enumerate(picture.lines)
            if (line.rate, line.latency) == (rate, latency)
        ]
        cables = picture.cables[rate, latency]
        title = f"{_speed(rate)}, {units.format(latency, 'time')}: {plural(cables, 'cable')}"
        for turn, width in enumerate(sorted({width for _, width in own})):
            points = [_points(picture.marks, line) for line, its in own if its == width]
            traces.append(
                {
                    "type": "scatter", "mode": "lines", "name": title, "legendgroup": title,
                    "showlegend": not turn, "hoverinfo": "skip",
                    "x": [v for x, _ in points for v in (*x, None)],
                    "y": [v for _, y in points for v in (*y, None)],
                    "line": {"width": width, "simplify": False, "color": _rate_colour(number, len(rates))},
                    "opacity": 0.35 if len(picture.lines) > 300 else 0.8,
                }
            )  # fmt: skip
    return [*traces, _handles(picture)]


def _speed(rate: float) -> str:
    """A line rate in bit/s, three digits.

    >>> _speed(12.5e9), _speed(1e9 / 3)
    ('100 Gbit/s', '2.67 Gbit/s')
    """
    bits = rate * 8
    for size, unit in ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits >= size:
            return f"{bits / size:.3g} {unit}" if bits / size < 999.5 else f"{bits / size:,.0f} {unit}"
    return f"{bits:.3g} bit/s"


def _widths(lines: Sequence[Line]) -> list[float]:
    """Width of each line in pixels: a step for each doubling of what it carries, up to 8."""
    carried = [line.rate * line.cables for line in lines]
    least = min(carried, default=1.0)
    return [min(1.2 + 0.8 * round(math.log2(one / least)), 8.0) for one in carried]


def _rate_colour(number: int, count: int) -> str:
    if count == 1:
        return "var(--muted)"
    return f"var(--{RATES[number * (len(RATES) - 1) // (count - 1)]})"


def _points(marks: Sequence[Mark], line: Line) -> tuple[list[float], list[float]]:
    a, b = (marks[end] for end in line.ends)
    if not line.bend:
        return [a.x, b.x], [a.y, b.y]
    along = np.linspace(0, 1, _SAMPLES)
    bow = 4 * line.bend * along * (1 - along)
    length = math.hypot(b.x - a.x, b.y - a.y) or 1.0
    x = a.x + (b.x - a.x) * along - (b.y - a.y) / length * bow
    y = a.y + (b.y - a.y) * along + (b.x - a.x) / length * bow
    return x.tolist(), y.tolist()


def _handles(picture: Picture) -> dict[str, Any]:
    """Points in the middle of lines that say what the line is."""
    middles = [_points(picture.marks, line) for line in picture.lines]
    halves = [
        (x[len(x) // 2], y[len(y) // 2]) if len(x) > 2 else (sum(x) / 2, sum(y) / 2) for x, y in middles
    ]
    said = [
        f"{plain(picture.marks[line.ends[0]].label)} – {plain(picture.marks[line.ends[1]].label)}<br>"
        f"{plural(line.cables, 'cable')} of {_speed(line.rate)}, {units.format(line.latency, 'time')}"
        for line in picture.lines
    ]
    return {
        "type": "scatter", "mode": "markers", "showlegend": False, "hovertemplate": "%{text}<extra></extra>",
        "x": [x for x, _ in halves], "y": [y for _, y in halves], "text": said,
        "marker": {"size": 9, "opacity": 0},
    }  # fmt: skip


# hosts and switches


def _mark_traces(picture: Picture) -> list[dict[str, Any]]:
    """One trace for the hosts of each kind, one for the switches."""
    held = list(dict.fromkeys(_held(mark) for mark in picture.marks if mark.kind == "host"))
    traces = []
    for number, devices in enumerate(held):
        own = [mark for mark in picture.marks if mark.kind == "host" and _held(mark) == devices]
        hosts = plural(sum(len(mark.names) for mark in own), "host")
        name = f"{hosts} with {_devices(devices)}"
        traces.append(_marks(picture, own, name, f"var(--{HOSTS[number % len(HOSTS)]})", "circle"))
    switches = [mark for mark in picture.marks if mark.kind == "switch"]
    if switches:
        name = plural(sum(len(mark.names) for mark in switches), "switch").replace("switchs", "switches")
        traces.append(_marks(picture, switches, name, "var(--text)", "square"))
    return traces


def _held(mark: Mark) -> tuple[str, str, int]:
    return mark.devices or ("", "", 0)


def _devices(devices: tuple[str, str, int]) -> str:
    kind, profile, count = devices
    return f"{count} {kind} {profile}" if count else "no device"


def _marks(picture: Picture, marks: Sequence[Mark], name: str, colour: str, symbol: str) -> dict[str, Any]:
    few = {y: _fit([mark for mark in marks if mark.y == y]) for y in {mark.y for mark in marks}}
    if picture.round:
        few = dict.fromkeys(
            few, len(marks) <= (MOST_LABELS if _outermost(picture, marks) else MOST_LABELS // 3)
        )
    return {
        "type": "scatter", "mode": "markers+text", "name": plain(name), "cliponaxis": False,
        "x": [mark.x for mark in marks], "y": [mark.y for mark in marks],
        "text": [_short(mark) if few[mark.y] else "" for mark in marks],
        "textposition": [_beside(picture, mark) for mark in marks],
        "textfont": {"size": 11, "color": "var(--text)"},
        "customdata": [_said(mark) for mark in marks], "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"color": colour, "symbol": symbol, "opacity": 1, "size": [_size(mark) for mark in marks],
                   "line": {"color": "var(--surface)", "width": 1.5}},
    }  # fmt: skip


def _short(mark: Mark) -> str:
    """A name, or what names have in common and how many there are."""
    if len(mark.names) == 1:
        return plain(mark.names[0], 14)
    first, last = mark.names[0], mark.names[-1]
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    while same and first[same - 1].isdigit():
        same -= 1
    if _number(last) - _number(first) + 1 != len(mark.names):  # not all in between
        return f"{plain(first, 14)} + {len(mark.names) - 1}"
    return f"{plain(first, 14)}–{plain(last[same:], 8)}"


def _fit(marks: Sequence[Mark]) -> bool:
    """Whether the names of the marks of one tier fit beside one another."""
    return _LETTER * (max(len(_short(mark)) for mark in marks) + 1) * len(marks) <= _WIDTH


def _number(name: str) -> int:
    """The number a name ends with."""
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits) if digits else 0


def _outermost(picture: Picture, marks: Sequence[Mark]) -> bool:
    """Whether no others lie further out."""
    return _reach(marks) >= _reach(picture.marks) - 1e-9


def _reach(marks: Sequence[Mark]) -> float:
    return max(math.hypot(mark.x, mark.y) for mark in marks)


def _beside(picture: Picture, mark: Mark) -> str:
    if not picture.round:
        return "bottom center" if mark.kind == "host" else "top center"
    reach = _reach(picture.marks)
    if picture.marks[0].y < 0.5 * reach or abs(mark.y) > 0.5 * reach:
        return "top center" if mark.y >= 0 else "bottom center"
    return "middle right" if mark.x > 0 else "middle left"


def _size(mark: Mark) -> float:
    return min(13 + 4 * math.log2(len(mark.names)), 34)


def _said(mark: Mark) -> str:
    lines = [plain(mark.label)]
    if len(mark.names) > 1:
        noun = "switches" if mark.kind == "switch" else "hosts"
        lines.append(f"{len(mark.names)} {noun}")
    if mark.kind == "host":
        each = " each" if len(mark.names) > 1 else ""
        lines.append(f"{plain(_devices(_held(mark)))}{each}")
    if mark.inside:
        lines.append(f"{plural(mark.inside, 'cable')} among them")
    return "<br>".join(lines)
