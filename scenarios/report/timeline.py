"""Timelines: each span of some workers in a first part of the run; who waits when over the whole of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.report.figure import Figure, axis, packed, plain, time_unit
from scenarios.report.gather import Findings, Group, coded
from scenarios.words import seconds
from simulator.result import SPAN_KINDS, Columns

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Workers drawn one by one; of more, a sample by how much they wait.
MAX_ROWS = 24
#: Variants with a timeline.
MAX_LANES = 6
#: Spans drawn a variant, and steps of the slowest variant that the window holds at most.
MAX_SPANS = 1500
WINDOW_STEPS = 10.0
#: Bins of time and rows of workers of the map of waiting.
BINS = 240
MAX_MAP_ROWS = 100

NEEDED = ("worker", "kind", "name", "start_s", "end_s", "size_bytes", "hidden")


@dataclass(frozen=True)
class Lane:
    """The spans of one variant that are drawn."""

    group: Group
    workers: IntArray
    total: int
    spans: Columns


def lanes_of(findings: Findings) -> list[Lane]:
    """One lane a variant with recorded spans."""
    lanes = []
    for group in findings.shown[:MAX_LANES]:
        spans, table = group.first.columns("spans", NEEDED), group.first.columns("workers")
        if spans is not None and table is not None and len(spans["worker"]):
            waiting = np.asarray(table["waiting_fraction"], dtype=float)
            lanes.append(Lane(group, _chosen(waiting), len(waiting), spans))
    return lanes


def _chosen(waiting: FloatArray) -> IntArray:
    """Workers to draw: all if few, else at even distances from who waits least to who waits most."""
    if len(waiting) <= MAX_ROWS:
        return np.arange(len(waiting))
    order = np.argsort(waiting, kind="stable")
    return np.unique(order[np.linspace(0, len(order) - 1, MAX_ROWS).astype(int)])


def detail(findings: Findings, lanes: list[Lane]) -> Figure | None:
    """All spans of the chosen workers in a window from the start, one lane a variant, one time axis."""
    if not lanes:
        return None
    end = window(lanes)
    size, unit = time_unit(end)
    traces, layout = [], dict[str, Any]()
    seen: set[int] = set()
    heights = [len(lane.workers) for lane in lanes]
    domains = _domains(heights, 1.6)
    for number, (lane, domain) in enumerate(zip(lanes, domains, strict=True), start=1):
        traces += _bars(lane, number, end, size, seen)
        layout |= _lane_axes(lane, number, domain)
    layout["xaxis"] = axis(
        f"simulated time ({unit})", range=[0, end / size], anchor=f"y{len(lanes)}", zeroline=False
    )
    layout |= {
        "barmode": "overlay",
        "hovermode": "closest",
        "bargap": 0.15,
        "legend": {"traceorder": "normal"},
    }
    layout["annotations"] = [_lane_title(lane, domain) for lane, domain in zip(lanes, domains, strict=True)]
    height = int(110 + 15 * sum(heights) + 24 * len(heights))
    alt = f"Spans of {len(lanes[0].workers)} workers in the first {seconds(end)}, one lane a variant"
    return Figure("timeline", traces, layout, height, alt)


def _time_axis(unit: str, end: float, lanes: int) -> dict[str, Any]:
    title = f"simulated time ({unit})"
    return axis(title, range=[0, end], anchor=f"y{lanes}" if lanes > 1 else "y", zeroline=False)


def window(lanes: list[Lane]) -> float:
    """Length of the part that is drawn (s): some steps of the slowest variant, and not too many spans."""
    longest = max(lane.group.mean("step_time_s.mean") or 0.0 for lane in lanes)
    whole = max(float(np.asarray(lane.spans["end_s"]).max()) for lane in lanes)
    wanted = min(WINDOW_STEPS * longest or whole, whole)
    for lane in lanes:
        start = np.asarray(lane.spans["start_s"])[np.isin(np.asarray(lane.spans["worker"]), lane.workers)]
        if len(start) > MAX_SPANS:
            wanted = min(wanted, float(np.partition(start, MAX_SPANS)[MAX_SPANS]))
    return wanted if wanted > 0 else whole


def _domains(heights: list[int], gap: float) -> list[tuple[float, float]]:
    """Vertical share of each lane, top down, with `gap` rows between two."""
    total = sum(heights) + gap * len(heights)
    domains, top = [], 1.0
    for height in heights:
        top -= gap / total
        domains.append((max(0.0, top - height / total), top))
        top -= height / total
    return domains


def _lane_axes(lane: Lane, number: int, domain: tuple[float, float]) -> dict[str, Any]:
    rows = len(lane.workers)
    return {
        f"yaxis{number}" if number > 1 else "yaxis": {
            "domain": list(domain), "range": [rows - 0.4, -0.6], "tickvals": list(range(rows)),
            "ticktext": [str(rank) for rank in lane.workers.tolist()], "showgrid": False,
            "zeroline": False, "automargin": True, "fixedrange": True, "tickfont": {"size": 10},
            "anchor": "x",
        }
    }  # fmt: skip


def _lane_title(lane: Lane, domain: tuple[float, float]) -> dict[str, Any]:
    shown = "" if len(lane.workers) == lane.total else f": {len(lane.workers)} of {lane.total:,} workers"
    return {
        "xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": domain[1], "yanchor": "bottom",
        "text": f"<b>{plain(lane.group.variant)}</b>{shown}", "showarrow": False, "font": {"size": 12},
    }  # fmt: skip


def _bars(lane: Lane, number: int, end: float, size: float, seen: set[int]) -> list[dict[str, Any]]:
    worker = np.asarray(lane.spans["worker"])
    start, stop = (np.asarray(lane.spans[name], dtype=float) for name in ("start_s", "end_s"))
    drawn = np.isin(worker, lane.workers) & (start < end) & (stop > start)
    kind, hidden = coded(lane.spans["kind"]), np.asarray(lane.spans["hidden"], dtype=bool)
    code = np.array([SPAN_KINDS.index(name) if name in SPAN_KINDS else -1 for name in kind.names])[kind.codes]
    traces = []
    for which, name in enumerate(SPAN_KINDS):
        for under in (False, True):
            rows = np.flatnonzero(drawn & (code == which) & (hidden == under))
            if len(rows):
                traces.append(_bar(lane, number, rows, name, under, size, which + 8 * under not in seen))
                seen.add(which + 8 * under)
    return traces


def _bar(
    lane: Lane, number: int, rows: IntArray, kind: str, hidden: bool, size: float, legend: bool
) -> dict[str, Any]:
    """One trace: the spans of one kind. Overlapped ones are thin and lie at the lower edge of their row."""
    names = coded(lane.spans["name"])
    start, stop = (np.asarray(lane.spans[name], dtype=float)[rows] for name in ("start_s", "end_s"))
    row = np.searchsorted(lane.workers, np.asarray(lane.spans["worker"])[rows])
    labels = [f"{plain(names.names[code])}, {seconds(length)}" for code, length in
              zip(names.codes[rows].tolist(), (stop - start).tolist(), strict=True)]  # fmt: skip
    name = f"{kind}, overlapped" if hidden else kind
    return {
        "type": "bar", "orientation": "h", "name": name, "legendgroup": name, "showlegend": legend,
        "x": packed((stop - start) / size), "base": packed(start / size),
        "y": packed(row + (0.34 if hidden else 0.0)), "width": 0.25 if hidden else 0.86,
        "xaxis": "x", "yaxis": f"y{number}" if number > 1 else "y", "customdata": labels,
        "marker": {"color": f"var(--{kind})", "line": {"width": 0}},
        "hovertemplate": f"%{{customdata}}<br>from %{{base:.6g}}<extra>{name}</extra>",
    }  # fmt: skip


def waiting_map(findings: Findings, lanes: list[Lane]) -> Figure | None:
    """Share of waiting per worker (or group of workers) and bin of time, over the whole run."""
    if not lanes:
        return None
    end = max(float(np.asarray(lane.spans["end_s"]).max()) for lane in lanes)
    size, unit = time_unit(end)
    maps = [waiting_shares(lane, end) for lane in lanes]
    heights = [max(6, min(24, len(shares))) for shares in maps]
    domains = _domains(heights, 2.2)
    layout: dict[str, Any] = {}
    traces = []
    for number, (lane, shares, domain) in enumerate(zip(lanes, maps, domains, strict=True), start=1):
        traces.append(_heat(lane, shares, number, end / size))
        layout |= _map_axes(number, domain)
    layout["xaxis"] = axis(
        f"simulated time ({unit})", range=[0, end / size], anchor=f"y{len(lanes)}", zeroline=False
    )
    layout["coloraxis"] = {
        "cmin": 0, "cmax": 1, "colorscale": [[0, "var(--heat0)"], [0.5, "var(--heat1)"], [1, "var(--heat2)"]],
        "colorbar": {"title": {"text": "waiting", "side": "top"}, "tickformat": ".0%", "thickness": 12,
                     "outlinewidth": 0, "len": 0.7, "y": 0, "yanchor": "bottom"},
    }  # fmt: skip
    layout["annotations"] = [
        _lane_title_map(lane, domain) for lane, domain in zip(lanes, domains, strict=True)
    ]
    layout["hovermode"] = "closest"
    height = int(110 + 9 * sum(heights) + 26 * len(heights))
    return Figure(
        "waiting-map", traces, layout, height, "Who waits when: share of waiting per worker over time"
    )


def _lane_title_map(lane: Lane, domain: tuple[float, float]) -> dict[str, Any]:
    title = _lane_title(lane, domain)
    return {**title, "text": f"<b>{plain(lane.group.variant)}</b>, {lane.total:,} workers"}


def _map_axes(number: int, domain: tuple[float, float]) -> dict[str, Any]:
    return {
        f"yaxis{number}" if number > 1 else "yaxis": {
            "domain": list(domain), "autorange": "reversed", "showgrid": False, "zeroline": False,
            "automargin": True, "fixedrange": True, "tickfont": {"size": 10}, "anchor": "x", "nticks": 6,
        }
    }  # fmt: skip


def _heat(lane: Lane, shares: FloatArray, number: int, end: float) -> dict[str, Any]:
    per_row = lane.total / len(shares)
    bins = shares.shape[1]
    return {
        "type": "heatmap", "coloraxis": "coloraxis", "xaxis": "x",
        "yaxis": f"y{number}" if number > 1 else "y",
        "z": packed(shares.astype(np.float32)), "x0": end / bins / 2, "dx": end / bins,
        "y0": (per_row - 1) / 2, "dy": per_row,
        "hovertemplate": "worker %{y:.0f}, at %{x:.4g}: waiting %{z:.0%}<extra></extra>",
    }  # fmt: skip


def waiting_shares(lane: Lane, end: float) -> FloatArray:
    """Share of waiting, shape (rows, BINS); NaN after the variant's own end."""
    kind = coded(lane.spans["kind"])
    waits = np.asarray(kind.codes == (kind.names.index("waiting") if "waiting" in kind.names else -1))
    worker = np.asarray(lane.spans["worker"], dtype=np.int64)[waits]
    start, stop = (np.asarray(lane.spans[name], dtype=float)[waits] for name in ("start_s", "end_s"))
    rows = min(lane.total, MAX_MAP_ROWS)
    row = worker * rows // lane.total
    shares = binned(row, start, stop, rows, end) / (lane.total / rows) / (end / BINS)
    over = int(np.ceil(float(np.asarray(lane.spans["end_s"]).max()) / end * BINS))
    shares[:, over:] = np.nan
    return np.clip(shares, 0.0, 1.0)


def binned(row: IntArray, start: FloatArray, stop: FloatArray, rows: int, end: float) -> FloatArray:
    """Seconds that intervals cover of each bin, summed by row, shape (rows, BINS); bins divide 0 .. end.

    The time covered before t is the sum over intervals of (t - start)+ - (t - stop)+, so each edge adds a
    ramp: a part to its own bin and the full width to all later ones.
    """
    width = end / BINS
    covered = np.zeros((rows, BINS + 1))
    for edges, sign in ((start, 1.0), (stop, -1.0)):
        place = np.clip((edges / width).astype(np.int64), 0, BINS - 1)
        left = (place + 1) * width - edges
        np.add.at(covered, (row, place), sign * left)
        np.add.at(covered, (row, place + 1), sign * (width - left))
    return np.cumsum(covered, axis=1)[:, :BINS]
