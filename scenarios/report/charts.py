"""Charts of learning and of where the time goes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scenarios.compare import pick
from scenarios.report.figure import Figure, axis, colour, dash, packed, plain, time_unit
from scenarios.report.gather import Curve, Findings, Group, curve_of
from scenarios.words import percent
from simulator.result import SPAN_KINDS

#: A loss that falls by more than this factor is drawn on a logarithmic axis.
LOG_FROM = 20.0

#: A part of the break-down below this share in all variants is not drawn.
LEAST_PART = 5e-4

#: What the parts of the break-down are called.
PARTS = ("compute", "exposed communication", *SPAN_KINDS[2:])


def learning(findings: Findings, metric: str, over: str) -> Figure | None:
    """A metric (loss, accuracy) of each variant over `time_s` or `samples`; None if nobody recorded it."""
    curves = [
        (group, curve) for group in findings.shown if (curve := curve_of(group, over, metric)) is not None
    ]
    if not curves:
        return None
    size, title = _scale(over, max(float(curve.x[-1]) for _, curve in curves))
    traces = [trace for group, curve in curves for trace in _curve_traces(group, curve, size, metric)]
    goal = (findings.target or {}).get(metric)
    if over == "time_s" and isinstance(goal, (int, float)):
        traces += [mark for group, _ in curves for mark in _reached(group, float(goal), size)]
    layout = {
        "xaxis": axis(title, rangemode="tozero"),
        "yaxis": axis(metric, **_y_axis(metric, [curve for _, curve in curves])),
        "legend": {"traceorder": "normal"},
        **(_goal_line(float(goal)) if isinstance(goal, (int, float)) else {}),
    }
    names = ", ".join(group.variant for group, _ in curves)
    return Figure(
        f"{metric}-{over}", traces, layout, 380, f"{metric} over {title}, one line each for {names}"
    )


def _scale(over: str, end: float) -> tuple[float, str]:
    if over == "samples":
        return 1.0, "samples computed"
    size, unit = time_unit(end)
    return size, f"simulated time ({unit})"


def _curve_traces(group: Group, curve: Curve, size: float, metric: str) -> list[dict[str, Any]]:
    x, name = curve.x / size, plain(group.variant)
    line = {
        "type": "scatter", "mode": "lines" if len(x) > 1 else "markers", "name": name, "legendgroup": name,
        "x": packed(x), "y": packed(curve.middle),
        "line": {"color": colour(group.number), "dash": dash(group.number), "width": 2},
        "marker": {"color": colour(group.number)},
        "hovertemplate": f"%{{y:.4g}} {metric}<extra>%{{fullData.name}}</extra>",
    }  # fmt: skip
    if len(group.runs) == 1:
        return [line]
    return [*_band(curve, x, name, group.number), line]


def _band(curve: Curve, x: Any, name: str, number: int) -> list[dict[str, Any]]:
    edge = {
        "type": "scatter", "mode": "lines", "x": packed(x), "line": {"width": 0}, "showlegend": False,
        "hoverinfo": "skip", "legendgroup": name,
    }  # fmt: skip
    return [
        {**edge, "y": packed(curve.low)},
        {**edge, "y": packed(curve.high), "fill": "tonexty", "fillcolor": colour(number, "band")},
    ]


def _reached(group: Group, goal: float, size: float) -> list[dict[str, Any]]:
    """A mark where the variant reached the target, at the mean over seeds."""
    times = [pick(run.summary, "time_to_target_s") for run in group.runs]
    there = [time for time in times if time is not None]
    if not there or len(there) < len(times):
        return []
    name = plain(group.variant)
    return [{
        "type": "scatter", "mode": "markers", "name": name, "legendgroup": name, "showlegend": False,
        "x": [float(np.mean(there)) / size], "y": [goal],
        "marker": {"color": colour(group.number), "size": 11, "symbol": "diamond",
                   "line": {"color": "var(--surface)", "width": 1.5}},
        "hovertemplate": "target reached at %{x:.4g}<extra>%{fullData.name}</extra>",
    }]  # fmt: skip


def _goal_line(goal: float) -> dict[str, Any]:
    line = {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": goal, "y1": goal,
        "line": {"color": "var(--muted)", "width": 1, "dash": "dash"},
    }  # fmt: skip
    label = {
        "xref": "paper", "x": 1, "xanchor": "right", "yref": "y", "y": goal, "yanchor": "bottom",
        "text": f"target {goal:g}", "showarrow": False, "font": {"color": "var(--muted)", "size": 12},
    }  # fmt: skip
    return {"shapes": [line], "annotations": [label]}


def _y_axis(metric: str, curves: list[Curve]) -> dict[str, Any]:
    if metric == "accuracy":
        return {"range": [0, 1.02], "tickformat": ".0%"}
    least = min(float(curve.middle.min()) for curve in curves)
    most = max(float(curve.middle.max()) for curve in curves)
    if least > 0 and most / least > LOG_FROM:
        return {"type": "log", **log_ticks(least, most)}
    return {"rangemode": "tozero"} if least >= 0 else {}


def log_ticks(least: float, most: float) -> dict[str, Any]:
    """Ticks at 1, 2 and 5 of each power of ten, at 1 alone over many of them, written out."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    digits = (1, 2, 5) if len(powers) <= 4 else (1,)
    ticks = [digit * 10.0**power for power in powers for digit in digits]
    return {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def breakdown(findings: Findings) -> Figure:
    """Shares of worker time per variant, as bars that add up to the whole."""
    groups = list(findings.shown)[::-1]  # plotly draws the first one at the bottom
    shares = np.array([group.shares() for group in groups])
    names = [plain(group.variant, 30) for group in groups]
    kinds = np.flatnonzero(shares.max(axis=0) >= LEAST_PART).tolist()
    traces = [_part(kind, names, shares[:, kind]) for kind in kinds]
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "xaxis": axis("share of worker time", range=[0, 1], tickformat=".0%", dtick=0.2),
        "yaxis": axis("", type="category", showgrid=False, ticklabelstandoff=6),
        "legend": {"traceorder": "normal"},
        "hovermode": "closest",
    }
    waits = ", ".join(
        f"{group.variant} {percent(group.mean('waiting_fraction'))}" for group in findings.shown
    )
    alt = f"Shares of worker time per variant; waiting: {waits}"
    return Figure("breakdown", traces, layout, 110 + 44 * len(groups), alt)


def _part(kind: int, names: list[str], shares: Any) -> dict[str, Any]:
    return {
        "type": "bar", "orientation": "h", "name": PARTS[kind], "y": names, "x": packed(shares),
        "marker": {"color": f"var(--{SPAN_KINDS[kind]})"},
        "text": [f"{100 * share:.0f} %" if share >= 0.04 else "" for share in shares],
        "textposition": "inside", "insidetextanchor": "middle", "textangle": 0,
        "textfont": {"color": f"var(--on-{SPAN_KINDS[kind]})", "size": 12},
        "hovertemplate": "%{y}: %{x:.2%}<extra>%{fullData.name}</extra>",
    }  # fmt: skip
