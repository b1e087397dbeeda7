"""What goes over the network: activities, and the events of those under way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from simpy.events import Event

from simulator.clock import Clock
from simulator.fabric import FloatArray, IntArray
from simulator.ledger import TICKS_PER_BYTE, Account
from simulator.steering import Steering

__all__ = ["TICKS_PER_BYTE", "Activity", "Message", "Record", "Route", "Transfer"]


@dataclass(slots=True)
class Activity:
    """One fluid transfer: a message, or a bundle of messages that advance at one rate.

    Attributes:
        links: ids of the links it loads, each once, shape (k,).
        weights: load on each of these links per unit of rate (how many members use it), shape (k,).
        size: bytes per unit of weight: what each member (edge) moves.
        cap: largest rate of a member, bytes/s.
        total_bytes: what all members send together, for the counters; `size` if not given.
        name: for the timeline.
        weight: its part of a contended link, against 1 for the others.
        steering: sets its course where it shares links; None: it is as fast as its share.
    """

    links: IntArray
    weights: FloatArray
    size: float
    cap: float = math.inf
    total_bytes: float | None = None
    name: str = ""
    weight: float = 1.0
    steering: Steering | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.size < math.inf and self.cap > 0 and 0 < self.weight < math.inf):
            raise ValueError(f"an activity of size {self.size}, cap {self.cap}, weight {self.weight}")

    @property
    def ticks(self) -> int:
        """All its bytes in units of the counters."""
        return round((self.size if self.total_bytes is None else self.total_bytes) * TICKS_PER_BYTE)

    @property
    def unlimited(self) -> bool:
        """Whether it takes no time."""
        return self.size == 0 or (len(self.links) == 0 and self.cap == math.inf)


class Transfer(Event):
    """An activity under way. Fires when its last byte has left; the value is that time, seconds.

    Attributes:
        activity: what is moved.
        begin: when it uses bandwidth from, seconds.
        src, dst: nodes of a message, -1 for a bundle.
        latency: of a message's path, seconds.
        arrived: of a message, fires `latency` later.
        weight: the activity's, or what `Network.set_weight` has made of it.
        number: among those that use links at present; -1 before and after.
        account: where its bytes are counted apart.
    """

    def __init__(self, clock: Clock, activity: Activity, begin: float) -> None:
        super().__init__(clock)
        self.activity = activity
        self.begin = begin
        self.src = self.dst = -1
        self.latency = 0.0
        self.arrived: Event | None = None
        self.weight = activity.weight
        self.number = -1
        self.ticks = activity.ticks
        self.account: Account | None = None

    def order(self) -> tuple[int, int, float, float, float, float, bytes, bytes]:
        """Decides who comes first within an instant: what it is, not who was started first."""
        it = self.activity
        links, weights = it.links.tobytes(), it.weights.tobytes()
        return (self.src, self.dst, self.begin, it.size, it.cap, self.weight, links, weights)


class Message(NamedTuple):
    """A message under way: `left` fires when its last byte has left, `arrived` one path latency later."""

    left: Transfer
    arrived: Event


class Record(NamedTuple):
    """One finished activity of the log: seconds, bytes; `src` and `dst` are nodes, -1 for a bundle."""

    name: str
    begin: float
    end: float
    total_bytes: float
    src: int
    dst: int
    activity: Activity


@dataclass(slots=True)
class Route:
    """The links from a node to another.

    Attributes:
        links: in path order, shape (hops,).
        weights: all 1, shape (hops,).
        latency: of the path, seconds.
        bandwidth: of its slowest link, bytes/s.
        ticks: what has gone over it and is not in the links' counters yet.
    """

    links: IntArray
    weights: FloatArray
    latency: float
    bandwidth: float
    ticks: int = 0
