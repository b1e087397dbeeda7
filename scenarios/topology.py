"""Networks looked at without a run: `paceline topology show | compare`.

A network is named by a topology file, a shipped one, or a scenario (file or shipped name), whose variants may
bring several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.compose import override
from scenarios.include import SCENARIOS, TOPOLOGIES, Includes, Library, shipped
from scenarios.lift import lifted
from scenarios.loading import load
from scenarios.machines import built, network_cost, prices_of, workers_of
from scenarios.merge import placed
from scenarios.schema import Scenario
from scenarios.words import nbytes, number, plural
from simulator.errors import InputError
from simulator.fabric import Fabric
from simulator.validation import did_you_mean, validate
from simulator.yaml_source import Mark, Node, read
from topologies.metrics import Metrics, metrics

if TYPE_CHECKING:
    from topologies.cost import Cost


@dataclass(frozen=True)
class Shown:
    """One network.

    Attributes:
        name: what it is called.
        scenario: whose cluster it is.
        fabric: without a server's own host.
    """

    name: str
    scenario: Scenario
    fabric: Fabric

    @property
    def kind(self) -> str:
        """Of the topology."""
        return self.scenario.cluster.topology.kind

    @cached_property
    def cost(self) -> Cost:
        """What it costs."""
        return network_cost(self.scenario)

    @cached_property
    def metrics(self) -> Metrics:
        """Counts, bisection and so on."""
        return metrics(self.fabric, self.cost.total)

    def as_json(self) -> dict[str, Any]:
        """The answer of `topology show --json`."""
        listed = prices_of(self.scenario)
        low, high = self.cost.varied()
        parts = {name: getattr(listed, name) for name in ("switch_port", "nic", "copper", "optics", "leased")}
        return {
            "name": self.name,
            "kind": self.kind,
            **self.metrics.as_json(),
            "cost": {name: getattr(self.cost, name) for name in (*parts, "hub")},
            "cost_range_usd": [low, high],
            "prices": {
                "name": listed.name,
                "sources": {name: {"source": p.source, "date": p.date} for name, p in parts.items()},
            },
        }


@dataclass(frozen=True)
class Asked:
    """How networks are looked at.

    Attributes:
        sets: overrides `KEY=VALUE`; keys of the cluster may leave `cluster.` out.
        prices: another price list, by name or file.
        budget: USD that each network is to cost; its cables are made faster or slower.
        variant: of a scenario; None: all that differ.
    """

    sets: Sequence[str] = ()
    prices: str | None = None
    budget: float | None = None
    variant: str | None = None


def networks(name: str, asked: Asked) -> list[Shown]:
    """The networks that a name stands for.

    Raises:
        InputError: there is none, or it cannot be built.
    """
    if _is_topology(name):
        return [_shown(*_of_topology(name, asked), asked)]
    study = load(name, [_in_cluster(text) for text in asked.sets])
    known = [scenario.variant for scenario in study.scenarios]
    if asked.variant is not None and asked.variant not in known:
        expected = f"one of {', '.join(known)}"
        raise InputError(expected, repr(asked.variant), "--variant", did_you_mean(asked.variant, known))
    found: list[Shown] = []
    for scenario in study.scenarios:
        if asked.variant not in (None, scenario.variant):
            continue
        label = scenario.variant if len(known) > 1 else study.name
        if all(one.scenario.cluster != scenario.cluster for one in found):
            found.append(_shown(label, scenario, study.nodes[scenario.variant], asked))
    return [replace(found[0], name=study.name)] if len(found) == 1 and asked.variant is None else found


def _is_topology(name: str) -> bool:
    """Whether a name is a topology's, not a scenario's.

    Raises:
        InputError: it is neither's.
    """
    path = name.partition("#")[0]
    if path.endswith((".yaml", ".yml")):
        return any(
            "topology" in document.data for document in read(Path(path)) if isinstance(document.data, dict)
        )
    if path in shipped(TOPOLOGIES):
        return True
    if path in shipped(SCENARIOS):
        return False
    known = [*shipped(TOPOLOGIES), *shipped(SCENARIOS)]
    hint = did_you_mean(path, known) or f"shipped topologies: {', '.join(shipped(TOPOLOGIES))}"
    raise InputError("FILE.yaml, or the name of a shipped topology or scenario", repr(name), "topology", hint)


def _in_cluster(text: str) -> str:
    own = text.split(".", 1)[0].split("=", 1)[0] in (
        "topology",
        "placement",
        "prices",
        "budget_usd",
        "price_factors",
    )
    return f"cluster.{text}" if own else text


def _of_topology(name: str, asked: Asked) -> tuple[str, Scenario, Node]:
    """A topology file as the cluster of the smallest scenario."""
    document, library = Library().document(name, Mark(None), TOPOLOGIES, "topology")

    def here(content: Any) -> Node:
        return Node(content, document.at, document.key)

    body = {key: node for key, node in document.content.items() if key not in ("paceline", "name")}
    includes = Includes((Scenario,), library)
    node = includes.all(here({"cluster": here(body), "stop": here({"steps": here(1)})}))
    for text in asked.sets:
        path, value = override(_in_cluster(text))
        node = placed(node, path, value, includes.at)
    node = lifted(includes.all(node))
    own = document.data.get("name")
    label = str(own or name.rpartition("/")[2].removesuffix(".yaml"))
    return label, validate(Scenario, node, {}), node


def _shown(label: str, scenario: Scenario, node: Node, asked: Asked) -> Shown:
    """The network built; what cannot be is told with its place."""
    change: dict[str, Any] = {}
    if asked.prices is not None:
        change["prices"] = asked.prices
    if asked.budget is not None:
        change["budget_usd"] = asked.budget
    scenario = scenario.model_copy(update={"cluster": scenario.cluster.model_copy(update=change)})
    try:
        prices_of(scenario)
    except InputError as error:
        raise replace(error, field="--prices" if asked.prices is not None else "cluster.prices") from None
    try:
        fabric = built(scenario)
        workers_of(scenario, fabric)
    except ValueError as error:
        placed_at = _placed(error, node)
        if asked.budget is not None and getattr(error, "at", ())[:1] == ("budget_usd",):
            placed_at = InputError(placed_at.expected, placed_at.found, "--budget", placed_at.hint)
        raise placed_at from None
    return Shown(label, scenario, fabric)


def _placed(error: ValueError, node: Node) -> InputError:
    at = getattr(error, "at", ())
    inside = at[:1] in (("budget_usd",), ("prices",), ("hosts",), ("workers",))
    path = ("cluster", *at) if inside else ("cluster", "topology", *at)
    found, expected = getattr(error, "found", ""), getattr(error, "expected", str(error))
    return node.error(path, expected=expected, found=found, hint=getattr(error, "hint", ""))


# tables

_Write = Callable[[Any], str]


def _usd(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} USD"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{nbytes(value)}/s"


def _paths(shown: Shown) -> tuple[str, str]:
    m = shown.metrics
    pairs = ((m.shortest_paths_mean, m.shortest_paths_least), (m.disjoint_paths_mean, m.disjoint_paths_least))
    mean_least = [
        f"{number(mean)} (least {number(least)})" if mean is not None else "-" for mean, least in pairs
    ]
    return mean_least[0], mean_least[1]


def details(shown: Shown) -> list[tuple[str, str]]:
    """What `topology show` tells, line by line."""
    m, cost = shown.metrics, shown.cost
    shortest, disjoint = _paths(shown)
    low, high = cost.varied()
    listed = prices_of(shown.scenario)
    exact = "" if m.bisection_exact else " (at most; too many halves to try)"
    parts = {
        "switch ports": cost.switch_port, "NICs": cost.nic, "copper": cost.copper, "optics": cost.optics,
        "leased lines": cost.leased, "hubs": cost.hub,
    }  # fmt: skip
    sources = sorted({part.source for part in (listed.switch_port, listed.nic, listed.copper, listed.optics)})
    return [
        ("network", f"{shown.name}, {shown.kind}"),
        ("hosts", f"{m.hosts:,} with {plural(m.devices, 'device')}"),
        ("switches", f"{m.switches:,}"),
        ("links", f"{m.links:,} directed, inside the hosts too"),
        ("bisection", f"{_rate(m.bisection_bytes_per_s)} one way{exact}"),
        ("oversubscription", number(m.oversubscription)),
        ("diameter", plural(m.diameter_hops, "hop")),
        ("shortest paths", f"{shortest} between two hosts"),
        ("disjoint paths", f"{disjoint} between places of hosts"),
        ("spectral gap", number(m.spectral_gap)),
        ("cost", f"{_usd(cost.total)}; {_usd(low)} to {_usd(high)} with one part's price halved or doubled"),
        ("of it", ", ".join(f"{name} {_usd(usd)}" for name, usd in parts.items() if usd)),
        ("prices", f"{listed.name} ({', '.join(sources)})"),
    ]


HEAD = (
    "network", "kind", "hosts", "switches", "links", "bisection", "oversub.", "diameter", "shortest paths",
    "disjoint paths", "spectral gap", "cost", "of a part x 1/2 .. 2",
)  # fmt: skip
"""Columns of the table of `topology compare`."""


def rows(shown: Sequence[Shown]) -> Iterator[list[str]]:
    """The rows of the table."""
    for one in shown:
        m = one.metrics
        shortest, disjoint = _paths(one)
        low, high = one.cost.varied()
        yield [
            one.name, one.kind, f"{m.hosts:,}", f"{m.switches:,}", f"{m.links:,}",
            _rate(m.bisection_bytes_per_s), number(m.oversubscription), str(m.diameter_hops), shortest,
            disjoint, number(m.spectral_gap), _usd(one.cost.total), f"{low:,.0f} .. {high:,.0f}",
        ]  # fmt: skip


def write_page(shown: Sequence[Shown], path: Path) -> None:
    """The drawings of some networks, with what is known of them, as one HTML file.

    Raises:
        InputError: not a name of an HTML file, or it cannot be written.
    """
    from scenarios.files import write_text
    from scenarios.report.networks_page import networks_page

    if path.suffix not in (".html", ".htm"):
        hint = "open the HTML in a browser: its camera button saves a PNG"
        raise InputError("FILE.html", repr(path.name), "--out", hint)
    try:
        write_text(networks_page(shown), path)
    except OSError as error:
        found = error.strerror or str(error)
        raise InputError("a file that can be written", found, "--out", file=str(path)) from None
