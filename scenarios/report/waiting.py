"""Charts of waiting per worker and of load per link, for four of them as for thousands."""

from __future__ import annotations

from itertools import islice, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.report.figure import Figure, axis, colour, dash, packed, plain
from scenarios.report.gather import Findings, Group, coded
from simulator.result import Column, Columns

FloatArray = NDArray[np.float64]

#: Up to this many workers each has a dot of its own; more are drawn as a sorted curve.
MAX_DOTS = 128
#: Links named in the chart, the busiest first.
MAX_LINKS = 20


def per_worker(findings: Findings) -> Figure | None:
    """Share of its time that each worker waits."""
    tables = [
        (group, table) for group in findings.shown if (table := group.first.columns("workers")) is not None
    ]
    if not tables:
        return None
    most = max(len(table["worker"]) for _, table in tables)
    draw, title = (_dots, "worker") if most <= MAX_DOTS else (_sorted, "workers, sorted by waiting (%)")
    traces = [
        draw(group, table, aside) for (group, table), aside in zip(tables, dodges(len(tables)), strict=True)
    ]
    ticks = {"range": [-0.6, most - 0.4], **({"dtick": 1} if most <= 32 else {})}
    layout = {
        "xaxis": axis(title, **(ticks if most <= MAX_DOTS else {"range": [0, 100]}), zeroline=False),
        "yaxis": axis("share of time waiting", tickformat=".0%", range=[0, _top(tables)]),
        "hovermode": "closest" if most <= MAX_DOTS else "x unified",
    }
    return Figure("waiting", traces, layout, 340, "Share of time that each worker waits, per variant")


def _top(tables: list[tuple[Group, Columns]]) -> float:
    most = max(float(np.asarray(table["waiting_fraction"]).max(initial=0)) for _, table in tables)
    return min(1.02, max(0.05, 1.1 * most))


def dodges(count: int) -> list[float]:
    """How far to set the dots of each of `count` variants aside, in rows, so that equal ones do not hide.

    >>> dodges(1), dodges(3)
    ([0.0], [-0.14, 0.0, 0.14])
    """
    gap = min(0.14, 0.6 / max(count - 1, 1))
    return [gap * (place - (count - 1) / 2) for place in range(count)]


def _dots(group: Group, table: Columns, aside: float) -> dict[str, Any]:
    places = zip(np.asarray(table["worker"]).tolist(), *_places(table), strict=True)
    return {
        "type": "scatter", "mode": "markers", "name": plain(group.variant),
        "x": packed(np.asarray(table["worker"], dtype=float) + aside),
        "y": packed(np.asarray(table["waiting_fraction"], dtype=float)),
        "customdata": [plain(f"{rank} ({host}, device {device})") for rank, host, device in places],
        "marker": {"color": colour(group.number), "size": 9, "opacity": 0.85}, "cliponaxis": False,
        "hovertemplate": "worker %{customdata}: %{y:.1%}<extra>%{fullData.name}</extra>",
    }  # fmt: skip


def _sorted(group: Group, table: Columns, _: float) -> dict[str, Any]:
    values = np.sort(np.asarray(table["waiting_fraction"], dtype=float))
    place = np.linspace(0, 100, min(len(values), 400))
    return {
        "type": "scatter", "mode": "lines", "name": plain(group.variant),
        "x": packed(place), "y": packed(np.interp(place, np.linspace(0, 100, len(values)), values)),
        "line": {"color": colour(group.number), "dash": dash(group.number), "width": 2},
        "hovertemplate": "%{y:.1%}<extra>%{fullData.name}</extra>",
    }  # fmt: skip


def _places(table: Columns) -> tuple[list[str], list[str]]:
    return texts(table["host"]), texts(table["device"])


def texts(column: Column) -> list[str]:
    """A column as texts."""
    return [str(value) for value in coded(column).texts().tolist()]


def extremes(group: Group, count: int = 3) -> list[tuple[str, str]]:
    """The workers that wait least (the ones waited for) and most, in words."""
    table = group.first.columns("workers")
    if table is None:
        return []
    waiting = np.asarray(table["waiting_fraction"], dtype=float)
    order, hosts = np.argsort(waiting, kind="stable"), texts(table["host"])
    ranks = np.asarray(table["worker"]).tolist()

    if len(waiting) > 1 and np.ptp(waiting) < 5e-4:
        return [("least", f"all equal: {100 * waiting.mean():.1f} %"), ("most", "")]

    def said(row: int) -> str:
        return f"{ranks[row]} ({hosts[row]}): {100 * waiting[row]:.1f} %"

    least, most = order[:count].tolist(), order[::-1][:count].tolist()
    return [("least", ", ".join(map(said, least))), ("most", ", ".join(map(said, most)))]


def links(findings: Findings) -> list[Figure]:
    """Mean utilisation of the busiest links, and of all links sorted where there are more."""
    tables = [
        (group, table) for group in findings.shown if (table := group.first.columns("links")) is not None
    ]
    tables = [(group, table) for group, table in tables if len(table["utilisation"])]
    if not tables:
        return []
    count = max(len(table["utilisation"]) for _, table in tables)
    figures = [_busiest(tables, count)]
    if count > MAX_LINKS:
        figures.append(_all_links(tables))
    return figures


def _busiest(tables: list[tuple[Group, Columns]], count: int) -> Figure:
    shares = {group.number: _utilisation(table) for group, table in tables}
    names = _chosen_links(list(shares.values()))[::-1]
    rows = list(range(len(names)))
    absent = (np.nan, np.nan)
    traces = [
        _link_dots(group, [shares[group.number].get(name, absent) for name in names], -aside)
        for (group, _), aside in zip(tables, dodges(len(tables)), strict=True)
    ]
    title = (
        "mean utilisation" if count <= MAX_LINKS else f"mean utilisation, busiest {len(names)} of {count:,}"
    )
    top = min(1.02, max(0.02, 1.08 * max(mean for share in shares.values() for mean, _ in share.values())))
    labels = {"tickvals": rows, "ticktext": [plain(name, 34) for name in names]}
    layout = {
        "xaxis": axis(title, range=[0, top], tickformat=".0%" if top > 0.1 else ".1%"),
        "yaxis": axis("", **labels, range=[-0.6, len(names) - 0.4], zeroline=False, ticklabelstandoff=6),
        "hovermode": "closest",
    }
    alt = f"Mean utilisation per link and variant; busiest {names[-1]}"
    return Figure("links", traces, layout, 120 + 22 * len(names), alt)


def _chosen_links(shares: list[dict[str, tuple[float, float]]]) -> list[str]:
    """The busiest links of each variant by turns (clusters may differ), busiest first."""
    ranked = [sorted(share, key=lambda name: -share[name][0]) for share in shares]
    turns = (name for names in zip_longest(*ranked) for name in names if name is not None)
    chosen = list(islice(dict.fromkeys(turns), MAX_LINKS))
    return sorted(chosen, key=lambda name: -max(share.get(name, (0.0, 0.0))[0] for share in shares))


def _utilisation(table: Columns) -> dict[str, tuple[float, float]]:
    mean, peak = (
        np.asarray(table[name], dtype=float).tolist() for name in ("utilisation", "utilisation_peak")
    )
    return dict(zip(texts(table["link"]), zip(mean, peak, strict=True), strict=True))


def _link_dots(group: Group, shares: list[tuple[float, float]], aside: float) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": plain(group.variant),
        "x": packed(np.array([mean for mean, _ in shares])),
        "y": packed(np.arange(len(shares)) + aside),
        "customdata": [f"{100 * peak:.3g} %" for _, peak in shares],
        "marker": {"color": colour(group.number), "size": 9, "opacity": 0.85}, "cliponaxis": False,
        "hovertemplate": "mean %{x:.2%}, peak %{customdata}<extra>%{fullData.name}</extra>",
    }  # fmt: skip


def _all_links(tables: list[tuple[Group, Columns]]) -> Figure:
    traces = []
    for group, table in tables:
        values = np.sort(np.asarray(table["utilisation"], dtype=float))
        place = np.linspace(0, 100, min(len(values), 400))
        traces.append({
            "type": "scatter", "mode": "lines", "name": plain(group.variant), "x": packed(place),
            "y": packed(np.interp(place, np.linspace(0, 100, len(values)), values)),
            "line": {"color": colour(group.number), "dash": dash(group.number), "width": 2},
            "hovertemplate": "%{y:.2%}<extra>%{fullData.name}</extra>",
        })  # fmt: skip
    layout = {
        "xaxis": axis("links, sorted by utilisation (%)", range=[0, 100]),
        "yaxis": axis("mean utilisation", tickformat=".0%", rangemode="tozero"),
    }
    return Figure("links-all", traces, layout, 340, "Mean utilisation of all links, sorted, per variant")
