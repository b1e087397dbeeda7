"""Background traffic: flows of strangers between hosts, which share the links with the run.

    network:
      background:
        - {kind: poisson, load: 0.3, size: 10 MB, spread: {kind: pareto, alpha: 1.5}}
        - {kind: endless, src: h0, dst: h1}

`poisson`: at each sending host flows begin at random (a Poisson process), each to a host drawn anew, so many
that they offer the share `load` of what the host's links to the network carry. `endless`: each sending host
always has one flow under way, the next begins as the last one ends. All draws are addressed by (entry, host,
number of the flow): they do not depend on the run, nor on other hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from simulator.activity import Activity
from simulator.distributions import Constant, Distribution
from simulator.errors import InputError
from simulator.fabric import Fabric, FloatArray, IntArray
from simulator.ledger import Account
from simulator.network import Network
from simulator.some_links import Patterns, hosts_named
from simulator.spec import Spec
from simulator.streams import Draws
from simulator.units import Bandwidth, PositiveBytes, PositiveSeconds, Quantity, Seconds

MOST_UNDER_WAY = 200_000
"""Flows of one entry at one time; more only come where the network cannot carry what is offered."""
Again = Callable[[], None]
_BLOCK = 64  # flows of a host whose numbers are drawn together


class _Flows(Spec):
    """What both kinds have."""

    src: Patterns = Field("*", description="hosts that send, by name; `*` and `?` for any letters")
    dst: Patterns = Field("*", description="hosts that receive")
    size: PositiveBytes = Field(Quantity(10e6), description="mean of a flow")
    spread: Distribution = Field(Constant(value=1.0), description="of a flow's size, over `size`")
    begin: Seconds = Quantity(0.0)
    end: PositiveSeconds | None = Field(None, description="no flow begins later; by default never")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end is not None and self.end <= self.begin:
            raise ValueError("found an `end` not after `begin`, expected a later one")
        return self

    @property
    def mean_size(self) -> float:
        """Bytes of a flow, in the mean."""
        return self.size * self.spread.mean

    def ends(self, fabric: Fabric) -> tuple[IntArray, IntArray]:
        """Numbers of the hosts that send, and of those that receive; the only receiver does not send.

        Raises:
            InputError: there are none.
        """
        src, dst = (self._hosts(fabric, key) for key in ("src", "dst"))
        if len(dst) == 1:
            src = src[src != dst[0]]
        if not len(src):
            name = fabric.node_names[fabric.hosts[dst[0]]]
            raise InputError("a host other than the one that sends", repr(name), "dst")
        return src, dst

    def _hosts(self, fabric: Fabric, key: str) -> IntArray:
        try:
            return hosts_named(fabric, getattr(self, key))
        except InputError as error:
            raise InputError(error.expected, error.found, key, error.hint) from None


class PoissonFlows(_Flows):
    """Flows that begin at random at each sending host, to a host drawn anew."""

    kind: Literal["poisson"] = "poisson"
    load: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.1, description="bytes offered by a sending host over what its links to the network carry"
    )


class EndlessFlows(_Flows):
    """One flow under way at each sending host at any time."""

    kind: Literal["endless"] = "endless"
    cap: Bandwidth | None = Field(None, description="the most that a flow takes")


BackgroundFlows = Annotated[PoissonFlows | EndlessFlows, Field(discriminator="kind")]
"""One entry of `network.background`."""


class _Numbers:
    """Uniform numbers of one host's flows, one after the other, drawn by address in blocks."""

    def __init__(self, draws: Draws, purpose: str) -> None:
        self._draws, self._purpose = draws, purpose
        self._taken = 0
        self._block: FloatArray = np.zeros(0)

    def take(self) -> float:
        number, place = divmod(self._taken, _BLOCK)
        if not place:
            self._block = self._draws.block(self._purpose, number, _BLOCK)
        self._taken += 1
        return float(self._block[place])


class _Sender:
    """One host of an entry."""

    def __init__(self, traffic: Traffic, host: int, dst: IntArray) -> None:
        self._traffic, self._spec, self._host = traffic, traffic.spec, host
        self._dst = dst[dst != host].tolist()
        purpose = f"{traffic.name}/{{}}/{host}"
        self._gaps, self._peers, self._sizes = (
            _Numbers(traffic.draws, purpose.format(what)) for what in ("gap", "dst", "size")
        )
        self._rate = 0.0
        if isinstance(self._spec, PoissonFlows):
            self._rate = self._spec.load * traffic.uplink(host) / self._spec.mean_size

    def begin(self) -> None:
        """The first flow of this host."""
        if isinstance(self._spec, PoissonFlows):
            self._next(self._spec.begin)
        else:
            self._at(self._spec.begin)

    def _at(self, time: float) -> None:
        if self._spec.end is None or time <= self._spec.end:
            self._traffic.network.clock.aside(time, self._send)

    def _next(self, time: float) -> None:
        self._at(time - float(np.log1p(-self._gaps.take())) / self._rate)

    def _send(self) -> None:
        now = self._traffic.network.clock.now
        dst = self._dst[min(int(self._peers.take() * len(self._dst)), len(self._dst) - 1)]
        size = self._spec.size * float(self._spec.spread.quantile(np.array([self._sizes.take()]))[0])
        if isinstance(self._spec, PoissonFlows):
            self._traffic.send(self._host, dst, size)
            self._next(now)
        else:
            self._traffic.send(self._host, dst, size, self._spec.cap, self._again)

    def _again(self) -> None:
        if self._spec.end is None or self._traffic.network.clock.now <= self._spec.end:
            self._send()


class Traffic:
    """The flows of one entry.

    Args:
        spec: the entry.
        index: its number.
        network: what carries them.
        draws: the run's random numbers.

    Attributes:
        account: their bytes.
    """

    def __init__(self, spec: PoissonFlows | EndlessFlows, index: int, network: Network, draws: Draws) -> None:
        self.spec, self.network, self.draws = spec, network, draws
        self.name = f"background/{index}"
        self.account: Account = network.account()
        self._under_way = 0
        self._routes: dict[tuple[int, int], IntArray] = {}
        fabric = network.fabric
        inside = np.array(fabric.node_kinds) == "device"
        out = ~inside[fabric.head]  # NICs; not the way to a device
        self._uplinks = np.bincount(fabric.tail[out], fabric.bandwidth[out], minlength=len(fabric.node_names))
        src, dst = spec.ends(fabric)
        self._senders = [_Sender(self, host, dst) for host in src.tolist()]

    def uplink(self, host: int) -> float:
        """What a host's links to the network carry together, bytes/s."""
        return float(self._uplinks[self.network.fabric.hosts[host]])

    def begin(self) -> None:
        """Put the first flow of each host on the clock."""
        for sender in self._senders:
            sender.begin()

    def send(
        self, src: int, dst: int, size: float, cap: float | None = None, then: Again | None = None
    ) -> None:
        """A flow of `size` bytes from host to host begins now; `then` is called as it ends.

        Raises:
            InputError: ever more flows are under way.
        """
        self._under_way += 1
        if self._under_way > MOST_UNDER_WAY:
            raise InputError(
                "background traffic that the network can carry",
                f"{self._under_way} flows under way at {self.network.clock.now:.6g} s",
                f"network.{self.name.replace('/', '.')}",
                "a smaller load",
            )
        links = self._route(src, dst)
        most = np.inf if cap is None else cap
        activity = Activity(links, np.ones(len(links)), size, most, name="background")
        transfer = self.network.start(activity, account=self.account)
        assert transfer.callbacks is not None
        transfer.callbacks.append(lambda _: self._ended(then))

    def _ended(self, then: Again | None) -> None:
        self._under_way -= 1
        if then is not None:
            then()

    def _route(self, src: int, dst: int) -> IntArray:
        links = self._routes.get((src, dst))
        if links is None:
            hubs = self.network.fabric.hosts
            path = self.network.fabric.router.paths(hubs[[src]], hubs[[dst]])[0]
            links = self._routes[src, dst] = np.unique(path[path >= 0]).astype(np.int64)
        return links


def background_of(
    specs: Sequence[PoissonFlows | EndlessFlows], network: Network, draws: Draws
) -> list[Traffic]:
    """The traffic of all entries."""
    return [Traffic(spec, index, network, draws) for index, spec in enumerate(specs)]
