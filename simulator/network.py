"""The network: activities that share links max-min fairly, messages between nodes, and their counters.

The network is fluid. An activity has one rate and loads each of its links with a multiple of it: a message
loads the links of its path once, a bundle (a whole ring of a collective) loads l `weights[l]` times. Rates
change only when an activity comes or goes; all changes of one instant are solved once, at its end.
What the fluid model leaves out: incast, flow-control pauses, packet loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from simpy.events import NORMAL, Event

from simulator.clock import LAST, Clock
from simulator.errors import PacelineError
from simulator.fabric import Fabric, FloatArray, IntArray
from simulator.water_filling import water_filling

Fidelity = Literal["flows", "bundles", "closed_form"]
SendEnds = Literal["left", "arrived"]

TICKS_PER_BYTE = 64  # byte counters are fixed-point integers: their sums do not depend on order
_TIE = 1e-12  # activities due within this part of their own duration leave together


class LawError(PacelineError):
    """The network broke a law that every run keeps: a fault of Paceline, not of its input."""


@dataclass(slots=True)
class Activity:
    """One fluid transfer: a message, or a bundle of messages that advance at one rate.

    Attributes:
        links: ids of the links it loads, each once, shape (k,).
        weights: load on each of these links per unit of rate (how many members use it), shape (k,).
        size: bytes per unit of weight: what each member (edge) moves.
        cap: largest rate, bytes/s.
        total_bytes: what all members send together, for the counters; `size` if not given.
        name: for the timeline.
    """

    links: IntArray
    weights: FloatArray
    size: float
    cap: float = math.inf
    total_bytes: float | None = None
    name: str = ""


class Record(NamedTuple):
    """One finished activity of the log: seconds, bytes; `src` and `dst` are nodes, -1 for a bundle."""

    name: str
    begin: float
    end: float
    total_bytes: float
    src: int
    dst: int
    activity: Activity


class Transfer(Event):
    """An activity under way. Fires when its last byte has left; the value is that time, seconds."""

    def __init__(self, clock: Clock, activity: Activity, begin: float) -> None:
        super().__init__(clock)
        self.activity = activity
        self.begin = begin
        self.latency = 0.0
        self.arrived: Event = self
        self.src = self.dst = -1
        self.remaining = activity.size
        self.rate = 0.0
        self.since = begin
        self.finish = math.inf

    @property
    def ticks(self) -> int:
        """All its bytes in units of the counters."""
        total = self.activity.total_bytes
        return round((self.activity.size if total is None else total) * TICKS_PER_BYTE)


class Message(NamedTuple):
    """A message under way: `left` fires when its last byte has left, `arrived` one path latency later."""

    left: Event
    arrived: Event


class _Route(NamedTuple):
    links: IntArray
    weights: FloatArray
    latency: float


class Network:
    """Links shared by activities.

    Args:
        clock: the run's clock.
        fabric: nodes, links, router.
        fidelity: `closed_form` shares nothing: each activity takes the time it would take alone.
        send_ends: when a member of a collective sends on; read by collectives.
        message_overhead: host seconds before each message.
        log: keep a `Record` of each activity.
    """

    def __init__(
        self,
        clock: Clock,
        fabric: Fabric,
        *,
        fidelity: Fidelity = "bundles",
        send_ends: SendEnds = "left",
        message_overhead: float = 0.0,
        log: bool = False,
    ) -> None:
        self.clock = clock
        self.fabric = fabric
        self.fidelity = fidelity
        self.send_ends = send_ends
        self.message_overhead = message_overhead
        self.log: list[Record] | None = [] if log else None
        self.bandwidth = fabric.bandwidth.copy()
        self.link_ticks = np.zeros(fabric.links, dtype=np.int64)
        self.sent_ticks = self.received_ticks = self.dropped_ticks = self.in_flight_ticks = 0
        self._routes: dict[tuple[int, int], _Route] = {}
        self._live: list[Transfer] = []
        self._solving = False
        self._wake = math.inf

    @property
    def link_bytes(self) -> FloatArray:
        """Bytes carried by each link for activities that have ended, shape (links,)."""
        return self.link_ticks / TICKS_PER_BYTE

    def start(self, activity: Activity, at: float | None = None) -> Transfer:
        """Begin an activity at `at` (default: now); it uses bandwidth from then on.

        Raises:
            ValueError: `at` is before now.
        """
        begin = self.clock.now if at is None else at
        if begin < self.clock.now:
            raise ValueError(f"a transfer cannot begin at {begin!r} s: now is {self.clock.now!r} s")
        return self._begin(Transfer(self.clock, activity, begin))

    def message(self, src_node: int, dst_node: int, nbytes: float, at: float | None = None) -> Message:
        """Send `nbytes` from node to node: bandwidth first, the last byte arrives one path latency later."""
        route = self._route(src_node, dst_node)
        begin = (self.clock.now if at is None else at) + (
            self.message_overhead if src_node != dst_node else 0.0
        )
        if begin < self.clock.now:
            raise ValueError(f"a message cannot begin at {begin!r} s: now is {self.clock.now!r} s")
        size = nbytes if len(route.links) else 0.0
        transfer = Transfer(self.clock, Activity(route.links, route.weights, size, total_bytes=nbytes), begin)
        transfer.latency, transfer.src, transfer.dst = route.latency, src_node, dst_node
        transfer.arrived = Event(self.clock)
        self._begin(transfer)
        return Message(transfer, transfer.arrived)

    def _route(self, src: int, dst: int) -> _Route:
        route = self._routes.get((src, dst))
        if route is None:
            path = self.fabric.router.paths(np.array([src]), np.array([dst]))
            links = path[0][path[0] >= 0]
            route = _Route(links, np.ones(len(links)), float(self.fabric.path_latency(path)[0]))
            self._routes[src, dst] = route
        return route

    def _begin(self, transfer: Transfer) -> Transfer:
        self.sent_ticks += transfer.ticks
        self.in_flight_ticks += transfer.ticks
        activity = transfer.activity
        alone = self._alone_seconds(activity)
        if self.fidelity == "closed_form" or alone == 0.0:
            self.clock.call_at(transfer.begin + alone, lambda: self._complete(transfer))
        else:
            self.clock.call_at(transfer.begin, lambda: self._join(transfer))
        return transfer

    def _alone_seconds(self, activity: Activity) -> float:
        if activity.size <= 0:
            return 0.0
        slowest = (activity.weights * activity.size / self.bandwidth[activity.links]).max(initial=0.0)
        return float(max(slowest, activity.size / activity.cap))

    def _join(self, transfer: Transfer) -> None:
        self._live.append(transfer)
        self._solve_soon()

    def _solve_soon(self) -> None:
        if not self._solving:
            self._solving = True
            self.clock.end_of_instant(self._solve, LAST)

    def _solve(self) -> None:
        self._solving = False
        live, now = self._live, self.clock.now
        if not live:
            return
        count = [len(t.activity.links) for t in live]
        rates = water_filling(
            self.bandwidth,
            np.repeat(np.arange(len(live)), count),
            np.concatenate([t.activity.links for t in live]),
            np.concatenate([t.activity.weights for t in live]),
            np.array([t.activity.cap for t in live]),
        )
        for transfer, rate in zip(live, rates.tolist(), strict=True):
            if rate != transfer.rate:
                transfer.remaining -= transfer.rate * (now - transfer.since)
                transfer.rate, transfer.since = rate, now
                transfer.finish = now + transfer.remaining / rate
        self._wake_at(min(t.finish for t in live))

    def _wake_at(self, time: float) -> None:
        self._wake = max(time, self.clock.now)
        self.clock.call_at(self._wake, self._leave_due)

    def _leave_due(self) -> None:
        now = self.clock.now
        if now != self._wake:
            return
        due = [t for t in self._live if t.finish < math.inf and t.finish - now <= _TIE * (t.finish - t.begin)]
        self._live = [t for t in self._live if t not in due]
        for transfer in due:
            self._complete(transfer)
        self._solve_soon()

    def _complete(self, transfer: Transfer) -> None:
        now, activity = self.clock.now, transfer.activity
        self.link_ticks[activity.links] += np.rint(activity.weights * activity.size * TICKS_PER_BYTE).astype(
            int
        )
        if self.log is not None:
            total = transfer.ticks / TICKS_PER_BYTE
            self.log.append(
                Record(activity.name, transfer.begin, now, total, transfer.src, transfer.dst, activity)
            )
        transfer.succeed(now)
        if transfer.arrived is not transfer:
            arrived = transfer.arrived
            arrived._ok, arrived._value = True, now + transfer.latency
            self.clock.push(arrived, now + transfer.latency, NORMAL)
        assert transfer.arrived.callbacks is not None
        transfer.arrived.callbacks.append(lambda _: self._received(transfer))

    def _received(self, transfer: Transfer) -> None:
        self.received_ticks += transfer.ticks
        self.in_flight_ticks -= transfer.ticks
