"""`paceline topology show | compare`: networks without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from simulator.errors import InputError

app = App(name="topology", help="Look at networks, and compare them.", help_format="plaintext")

Json = Annotated[bool, Parameter(name="--json", negative="")]
Sets = Annotated[list[str] | None, Parameter(name="--set", negative="")]


@app.command
def show(
    name: str,
    /,
    *,
    variant: str | None = None,
    set_: Sets = None,
    prices: str | None = None,
    budget: float | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Tell what a network has, can do and costs; draw it.

    For example:
      paceline topology show four_by_four
      paceline topology show my.yaml --set topology.hosts=64 --out network.html
      paceline topology show networks --variant torus --json

    Parameters
    ----------
    name
        A topology file or shipped topology, or a scenario (FILE.yaml or shipped name) for its cluster.
    variant
        Of a scenario. Default: its first.
    set_
        Override KEY=VALUE with a dotted key, as topology.link.bandwidth.
    prices
        A shipped price list or FILE.yaml. Default: the cluster's own, or ethernet_2026.
    budget
        USD: make all cables faster or slower by one factor, so that the network costs this.
    out
        FILE.html to draw to.
    as_json
        Print {"hosts", "devices", "switches", "links", "bisection_bytes_per_s", ...} as JSON.
    """
    from scenarios.console import print_json, say
    from scenarios.topology import Asked, details, networks, write_page

    found = networks(name, Asked(set_ or (), prices, budget, variant))[0]
    if out is not None:
        write_page([found], out)
    if as_json:
        print_json(found.as_json())
        return
    lines = details(found)
    width = max(len(key) for key, _ in lines) + 2
    for key, value in lines:
        say(f"{key:{width}}{value}")
    if out is not None:
        say(str(out))


@app.command
def compare(
    *names: str,
    set_: Sets = None,
    prices: str | None = None,
    budget: float | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Compare networks in one table: what they can do, what they cost.

    For example:
      paceline topology compare star_16 torus_64 fat_tree_128
      paceline topology compare networks --out networks.html
      paceline topology compare networks --budget 100000

    Parameters
    ----------
    names
        As for show; a scenario stands for the clusters of all its variants.
    set_
        Override KEY=VALUE with a dotted key, in all of them.
    prices
        A shipped price list or FILE.yaml. Default: the cluster's own, or ethernet_2026.
    budget
        USD: make the cables of each network faster or slower, so that it costs this.
    out
        FILE.html with the table and a drawing of each.
    as_json
        Print {"topologies": [{"name", "kind", "hosts", ...}]} as JSON.
    """
    from scenarios.console import print_json, print_table, say
    from scenarios.topology import HEAD, Asked, networks, rows, write_page

    if not names:
        raise InputError("at least one topology or scenario", "none", "NAMES")
    found = [one for name in names for one in networks(name, Asked(set_ or (), prices, budget))]
    if out is not None:
        write_page(found, out)
    if as_json:
        print_json({"topologies": [one.as_json() for one in found]})
        return
    print_table(list(HEAD), list(rows(found)), numbers_from=2, spare=[10, 9, 8, 12, 7, 3])
    if out is not None:
        say(str(out))
