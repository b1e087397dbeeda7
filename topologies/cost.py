"""What a network costs to buy: ports, NICs, cables, what joins the devices of a server.

Each cable between hosts and switches counts a port or NIC at both ends, by its line rate. It is copper where
it ends at a host, optics between switches, and a leased line (without ports) where its latency says that it
is longer than `OWN_CABLE`. A switch costs what its used ports cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import exp, log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from simulator.fabric import Fabric, FloatArray, IntArray
from simulator.spec import Spec
from topologies.links import Impossible
from topologies.prices import Prices

if TYPE_CHECKING:
    from topologies import AnyTopology

OWN_CABLE = 100e-6
"""Seconds one way, about 20 km of fibre: longer lines are leased."""
_WIDEST = 1e12  # factor of bandwidths within which a network of a given cost is looked for


class PriceFactors(Spec):
    """What each price of a list is multiplied by: 2 and 0.5 show what rests on a price."""

    switch_port: float = Field(1.0, gt=0, le=1000)
    nic: float = Field(1.0, gt=0, le=1000)
    copper: float = Field(1.0, gt=0, le=1000)
    optics: float = Field(1.0, gt=0, le=1000)
    leased: float = Field(1.0, gt=0, le=1000)
    hub: float = Field(1.0, gt=0, le=1000)


@dataclass(frozen=True)
class Cost:
    """USD, by part."""

    switch_port: float
    nic: float
    copper: float
    optics: float
    leased: float
    hub: float

    @property
    def total(self) -> float:
        """All parts together."""
        return float(sum(asdict(self).values()))

    def times(self, factors: PriceFactors | Mapping[str, float]) -> Cost:
        """With other prices."""
        by = factors.model_dump() if isinstance(factors, PriceFactors) else factors
        return Cost(**{name: usd * by.get(name, 1.0) for name, usd in asdict(self).items()})

    def varied(self, factor: float = 2.0) -> tuple[float, float]:
        """Least and highest total with one part's price divided or multiplied by `factor`."""
        totals = [self.times({field.name: by}).total for field in fields(self) for by in (1 / factor, factor)]
        return min(totals), max(totals)


@dataclass(frozen=True)
class Cables:
    """The cables of a network, hosts' insides left out; arrays of shape (cables,).

    Attributes:
        link: a link of each.
        rate: line rate, bytes/s.
        nics, ports: how many of its ends are at hosts, at switches.
        leased: whether it is too long to own.
    """

    link: IntArray
    rate: FloatArray
    nics: IntArray
    ports: IntArray
    leased: NDArray[np.bool_]

    @classmethod
    def of(cls, fabric: Fabric) -> Cables:
        """Those of a fabric."""
        kinds = np.array(fabric.node_kinds)
        link = np.arange(fabric.links)
        back = link ^ 1
        known = back < fabric.links
        back = np.where(known, back, 0)
        paired = known & (fabric.tail[back] == fabric.head) & (fabric.head[back] == fabric.tail)
        outside = (kinds[fabric.tail] != "device") & (kinds[fabric.head] != "device")
        link = link[outside & ~(paired & (link % 2 == 1))]
        hosts = (kinds[fabric.tail[link]] == "host").astype(np.int64) + (kinds[fabric.head[link]] == "host")
        rate = fabric.bandwidth if fabric.line_rate is None else fabric.line_rate
        return cls(link, rate[link], hosts, 2 - hosts, fabric.latency[link] > OWN_CABLE)


def cost_of(topology: AnyTopology, fabric: Fabric, prices: Prices) -> Cost:
    """What the network of a fabric built from `topology` costs."""
    hub = 0.0
    for host, count in topology.interiors():
        price = prices.hub.get(host.kind)
        if price is None:
            raise Impossible(
                f"no price of a {host.kind} hub", f"one in the list {prices.name}", at=("prices",)
            )
        hub += count * (price.usd + price.usd_per_device * host.devices.count)
    return _cables_cost(Cables.of(fabric), prices, hub)


def _cables_cost(cables: Cables, prices: Prices, hub: float, factor: float = 1.0) -> Cost:
    rate, own = cables.rate * factor, ~cables.leased
    copper = own & (cables.nics > 0)
    optics = own & (cables.nics == 0)
    return Cost(
        switch_port=float((prices.switch_port.at(rate) * cables.ports)[own].sum()),
        nic=float((prices.nic.at(rate) * cables.nics)[own].sum()),
        copper=float(prices.copper.at(rate[copper]).sum()),
        optics=float(prices.optics.at(rate[optics]).sum()),
        leased=float(prices.leased.at(rate[cables.leased]).sum()),
        hub=hub,
    )


def factor_at_cost(
    topology: AnyTopology, fabric: Fabric, prices: Prices, budget: float, factors: PriceFactors
) -> float:
    """By how much all cables must be faster for the network to cost `budget` USD.

    Raises:
        Impossible: no bandwidth makes it cost that.
    """
    cables, hub = Cables.of(fabric), cost_of(topology, fabric, prices).hub

    def total(log_factor: float) -> float:
        return _cables_cost(cables, prices, hub, exp(log_factor)).times(factors).total

    low, high = -log(_WIDEST), log(_WIDEST)
    least, most = total(low), total(high)
    if not least <= budget <= most:
        raise Impossible(
            f"a budget of {budget:,.0f} USD",
            f"at least {least:,.0f} USD for this many parts"
            if budget < least
            else f"at most {most:,.0f} USD",
            "fewer cables, or other prices" if budget < least else "",
            at=("budget_usd",),
        )
    return exp(_root(total, budget, low, high))


def widened(fabric: Fabric, factor: float) -> Fabric:
    """The fabric with all cables between hosts and switches faster by a factor."""
    kinds = np.array(fabric.node_kinds)
    outside = (kinds[fabric.tail] != "device") & (kinds[fabric.head] != "device")
    scale = np.where(outside, factor, 1.0)
    rate = None if fabric.line_rate is None else fabric.line_rate * scale
    return replace(fabric, bandwidth=fabric.bandwidth * scale, line_rate=rate)


def _root(rising: Any, wanted: float, low: float, high: float) -> float:
    """Where a function that never falls comes to `wanted`: the highest such place, by halving."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) <= wanted else (low, middle)
    return low
