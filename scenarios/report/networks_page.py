"""The page of `topology show --out` and `topology compare --out`: what is known of networks, and drawings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenarios.report.network import network_figure
from scenarios.report.page import page, paragraph, place, section, table, text
from topologies.picture import picture

if TYPE_CHECKING:
    from scenarios.topology import Shown


def networks_page(shown: Sequence[Shown]) -> str:
    """The page as HTML."""
    from scenarios.machines import prices_of
    from scenarios.topology import HEAD, details, rows

    figures, parts = [], []
    for index, one in enumerate(shown):
        drawn = picture(one.scenario.cluster.topology, one.fabric)
        figure = network_figure(f"network-{index}", drawn, f"{one.name}, {one.kind}")
        figures.append(figure)
        merged = any(len(mark.names) > 1 for mark in drawn.marks)
        note = (
            "A mark is a host or switch, a larger one several that are cabled alike or lie side by side; "
            "lines are wider the more they carry."
            if merged
            else "Circles are hosts, squares switches."
        )
        facts = "".join(f"<dt>{text(key)}</dt><dd>{text(value)}</dd>" for key, value in details(one)[1:])
        parts.append(
            section(f"{one.name}: {one.kind}", place(figure), paragraph(note, "note"), f"<dl>{facts}</dl>")
        )
    title = shown[0].name if len(shown) == 1 else f"{len(shown)} networks"
    body = [f"<h1>{text(title)}</h1>"]
    listed = ", ".join(dict.fromkeys(prices_of(one.scenario).name for one in shown))
    body.append(paragraph(f"Networks as Paceline builds them; prices: {listed}.", "meta"))
    if len(shown) > 1:
        cells = [[text(cell) for cell in row] for row in rows(shown)]
        body.append(table(HEAD, cells))
    return page(f"{title} - Paceline", "\n".join([*body, *parts]), figures)
