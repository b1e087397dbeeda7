"""What a cable is, what a topology may not be, and how large it may grow."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from simulator.spec import Spec
from simulator.units import Bandwidth, Seconds

MOST_LINKS = 2_000_000
"""Directed links of a fabric, all kinds together."""
MOST_NODES = 1_000_000
"""Hubs, devices and switches of a fabric."""


class Impossible(ValueError):
    """A topology that cannot be: what was `found`, what was `expected`, a `hint` how to mend it.

    Attributes:
        at: keys and indices from the topology's mapping to the value at fault; empty: the whole.
    """

    def __init__(self, found: str, expected: str, hint: str = "", *, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"found {found}, expected {expected}" + (f" ({hint})" if hint else ""))
        self.found, self.expected, self.hint, self.at = found, expected, hint, at


class Wire(Protocol):
    """Bandwidth in bytes/s and latency in seconds, one way: a `LinkSpec`, or a profile's `nvlink`."""

    @property
    def bandwidth(self) -> float:
        """Bytes/s, each way."""
        ...

    @property
    def latency(self) -> float:
        """Seconds, one way."""
        ...


class LinkSpec(Spec):
    """One full-duplex cable: two directed links of this bandwidth and latency.

    Attributes:
        bandwidth: line rate, bytes/s, each way.
        latency: seconds one way, for this link alone (host to host over one switch is two links).
        efficiency: share of the line rate left for payload.
    """

    bandwidth: Bandwidth
    latency: Seconds
    efficiency: float = Field(default=1.0, gt=0, le=1)


def payload(wire: Wire) -> float:
    """Bytes/s of payload: the bandwidth times the efficiency, where there is one.

    >>> payload(LinkSpec(bandwidth="25 Gbit/s", latency="2 us", efficiency=0.92))
    2875000000.0
    """
    return wire.bandwidth * wire.efficiency if isinstance(wire, LinkSpec) else wire.bandwidth


def within_bounds(nodes: int, links: int) -> None:
    """Refuses a fabric too large to hold, before anything of it is built.

    Raises:
        Impossible: more than `MOST_NODES` nodes or `MOST_LINKS` directed links.
    """
    if nodes > MOST_NODES or links > MOST_LINKS:
        raise Impossible(
            f"{nodes:,} nodes and {links:,} directed links",
            f"at most {MOST_NODES:,} nodes and {MOST_LINKS:,} directed links",
            "take fewer hosts, devices or NICs",
        )
