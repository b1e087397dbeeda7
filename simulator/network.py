"""The network: activities that share links max-min fairly, messages between nodes, and their counters.

The network is fluid. An activity has one rate and loads each of its links with a multiple of it: a message
loads the links of its path once, a bundle (a whole ring of a collective) loads l `weights[l]` times. Rates
change only when an activity comes or goes; all changes of one instant are solved once, at its end, in an
order that does not depend on who was started first.
What the fluid model leaves out: incast, flow-control pauses, packet loss.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from simpy.events import NORMAL, Event

from simulator.activity import TICKS_PER_BYTE, Activity, Message, Record, Route, Transfer
from simulator.clock import LAST, Clock
from simulator.errors import PacelineError
from simulator.fabric import Fabric, FloatArray, IntArray
from simulator.ledger import Account, Supply, ticks_on_links
from simulator.steering import Steered
from simulator.unshared import Shares, Unshared

if TYPE_CHECKING:
    from simulator.fairshare import FairShare

__all__ = ["TICKS_PER_BYTE", "Activity", "LawError", "Message", "Network", "Record", "Transfer"]

Fidelity = Literal["flows", "bundles", "closed_form"]
SendEnds = Literal["left", "arrived"]

_SLACK = 1 - 1e-9  # of the law of the busiest port: rounding of the solver's sums


class LawError(PacelineError):
    """The network broke a law that every run keeps: a fault of Paceline, not of its input."""


class Network:
    """Links shared by activities.

    Args:
        clock: the run's clock.
        fabric: nodes, links, router.
        fidelity: `closed_form` shares nothing: each activity takes the time it would take alone.
        send_ends: when a member of a collective sends on; read by collectives.
        message_overhead: host seconds before each message.
        log: keep a `Record` of each activity.

    Attributes:
        bandwidth: bytes/s of each link at present, shape (links,).
        log: of the activities that have ended, in order of ending; None if not kept.
        wakes: events of its own that it has on the clock.
        changes: how often a bandwidth has changed.
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
        self.sent_ticks = self.received_ticks = self.dropped_ticks = 0
        self._ended = 0  # transfers
        self._link_ticks = np.zeros(fabric.links, dtype=np.int64)
        self._best = self.bandwidth.copy()  # highest bandwidth each link has had: for the law
        self._accounts: list[Account] = []
        self._supply: Supply | None = None
        self.wakes = self.changes = 0
        self._routes: dict[tuple[int, int], Route] = {}
        self._shares: Shares = Unshared(self.bandwidth)
        self._in_flight: dict[Transfer, None] = {}
        self._under_way: dict[int, Transfer] = {}
        self._coming: list[Transfer] = []
        self._going: list[int] = []
        self._changed: dict[int, float] = {}
        self._solving = False
        self._wake = self._look = math.inf
        self._steered = Steered()
        self._teams = 0

    def start(self, activity: Activity, at: float | None = None, account: Account | None = None) -> Transfer:
        """Begin an activity at `at` (default: now); it uses bandwidth from then on.

        Args:
            activity: what is moved.
            at: when, seconds.
            account: where its bytes are counted apart, besides all others.

        Raises:
            ValueError: `at` is before now.
        """
        transfer = Transfer(self.clock, activity, self.clock.now if at is None else at)
        transfer.account = account
        self._begin(transfer)
        return transfer

    def message(
        self,
        src_node: int,
        dst_node: int,
        nbytes: float,
        at: float | None = None,
        account: Account | None = None,
    ) -> Message:
        """Send `nbytes` from node to node: bandwidth first, the last byte arrives one path latency later.

        Within a node it takes no time. Arguments as for `start`.

        Raises:
            ValueError: `at` is before now.
        """
        route = self._routes.get((src_node, dst_node)) or self._find_route(src_node, dst_node)
        begin = self.clock.now if at is None else at
        if src_node != dst_node:
            begin += self.message_overhead
        transfer = Transfer(self.clock, Activity(route.links, route.weights, nbytes), begin)
        transfer.src, transfer.dst, transfer.latency = src_node, dst_node, route.latency
        transfer.account = account
        arrived = transfer.arrived = Event(self.clock)
        self._begin(transfer)
        return Message(transfer, arrived)

    def account(self) -> Account:
        """A place to count the bytes of some transfers apart."""
        self._accounts.append(Account(self.fabric.links))
        return self._accounts[-1]

    def new_team(self) -> int:
        """A number for activities that pause at the same times, see `steering`."""
        self._teams += 1
        return self._teams

    def set_bandwidth(self, link: int, bandwidth: float) -> None:
        """A link has another bandwidth (bytes/s) from now on."""
        if not 0 < bandwidth < math.inf:
            raise ValueError(f"a link needs a positive bandwidth, not {bandwidth!r} bytes/s")
        self._fold_routes()
        self._routes.clear()
        if self._supply is None:
            self._supply = Supply(self.bandwidth)
        self.changes += 1
        self._supply.change(link, float(self.bandwidth[link]), self.clock.now)
        self.bandwidth[link] = self._changed[link] = bandwidth
        self._best[link] = max(self._best[link], bandwidth)
        self._solve_soon()

    def set_weight(self, transfer: Transfer, weight: float) -> None:
        """Give a transfer another part of its contended links, against 1 for the others, from now on."""
        if not 0 < weight < math.inf:
            raise ValueError(f"a transfer needs a positive weight, not {weight!r}")
        transfer.weight = weight
        if transfer.number >= 0 and transfer not in self._coming:
            self._coming.append(transfer)  # with its number: it goes and comes back
            self._solve_soon()

    def drop(self, transfer: Transfer) -> None:
        """Lose a transfer under way: it gives its links back, and its events never fire."""
        if transfer.triggered or transfer not in self._in_flight:
            raise ValueError("only a transfer that has begun and has not left can be dropped")
        del self._in_flight[transfer]
        self.dropped_ticks += transfer.ticks
        if transfer.account is not None:
            transfer.account.dropped_ticks += transfer.ticks
        if transfer.number >= 0:
            self._going.append(transfer.number)
            del self._under_way[transfer.number]
            transfer.number = -1
            self._solve_soon()
        if transfer in self._coming:
            self._coming.remove(transfer)

    @property
    def in_flight_ticks(self) -> int:
        """Bytes handed to the network that have not arrived yet, in units of the counters."""
        return sum(transfer.ticks for transfer in self._in_flight)

    @property
    def unaccounted_in_flight(self) -> int:
        """Transfers under way that are not counted apart."""
        return sum(transfer.account is None for transfer in self._in_flight)

    def supplied(self, until: float) -> FloatArray:
        """Bytes each link could have carried from time 0 to `until` (seconds, not before now), (links,)."""
        if self._supply is None:
            return self.bandwidth * until
        return self._supply.until(until, self.bandwidth)

    @property
    def link_ticks(self) -> IntArray:
        """Bytes carried by each link for activities that have ended, in units of the counters, (links,)."""
        self._fold_routes()
        return self._link_ticks

    @property
    def link_bytes(self) -> FloatArray:
        """Bytes carried by each link for activities that have ended, shape (links,)."""
        return self.link_ticks / TICKS_PER_BYTE

    @property
    def best_bandwidth(self) -> FloatArray:
        """Highest bandwidth (bytes/s) each link has had so far, shape (links,)."""
        return self._best

    @property
    def busy_seconds(self) -> FloatArray:
        """Time so far during which each link carried something, shape (links,)."""
        return self._shares.busy_seconds(self.clock.now)

    @property
    def peak_utilisation(self) -> FloatArray:
        """Highest load / bandwidth so far of each link, for those done with; at most 1; shape (links,)."""
        return self._shares.peaks()

    def check_laws(self) -> None:
        """Bytes are conserved, and no link has carried more than its bandwidth allows.

        Raises:
            LawError: a fault of Paceline.
        """
        gone = self.received_ticks + self.dropped_ticks + self.in_flight_ticks
        if self.sent_ticks != gone:
            raise LawError(f"{self.sent_ticks} byte ticks were sent, {gone} are accounted for")
        if self.fidelity == "closed_form":  # nothing is shared: links may carry more
            return
        most = self._best * self.busy_seconds
        rounding = 1 + self._ended / (2 * TICKS_PER_BYTE)  # each transfer's bytes are rounded to ticks
        excess = self.link_bytes * _SLACK - most - self._best * 4 * np.spacing(self.clock.now) - rounding
        if excess.max(initial=-1.0) > 0:
            link = int(excess.argmax())
            raise LawError(
                f"link {self.fabric.link_names[link]} carried {self.link_bytes[link]!r} bytes; "
                f"it could have carried {most[link]!r}"
            )

    def _find_route(self, src: int, dst: int) -> Route:
        path = self.fabric.router.paths(np.array([src]), np.array([dst]))
        links = path[0][path[0] >= 0].astype(np.int64)
        latency = float(self.fabric.path_latency(path)[0])
        bandwidth = float(self.bandwidth[links].min(initial=math.inf))
        route = Route(links, np.ones(len(links)), latency, bandwidth)
        self._routes[src, dst] = route
        return route

    def _fold_routes(self) -> None:
        """Bring the links' counters up to date: messages are counted on their routes."""
        for route in self._routes.values():
            if route.ticks:
                self._link_ticks[route.links] += route.ticks
                route.ticks = 0

    def _begin(self, transfer: Transfer) -> None:
        begin, now = transfer.begin, self.clock.now
        if not now <= begin < math.inf:
            raise ValueError(f"a transfer cannot begin at {begin!r} s: now is {now!r} s")
        if begin == now:
            self._enter(transfer)
        else:
            self.clock.call_at(begin, lambda: self._enter(transfer))

    def _enter(self, transfer: Transfer) -> None:
        self.sent_ticks += transfer.ticks
        if transfer.account is not None:
            transfer.account.sent_ticks += transfer.ticks
        self._in_flight[transfer] = None
        if transfer.activity.unlimited:
            self._complete(transfer)
        else:
            self._coming.append(transfer)
            self._solve_soon()

    def _solve_soon(self) -> None:
        if not self._solving:
            self._solving = True
            self.clock.end_of_instant(self._solve, LAST)

    def _solve(self) -> None:
        """All changes of this instant: who goes, links, who comes; then new rates, and when to wake up."""
        now, coming = self.clock.now, self._coming
        self._solving = False
        self._coming = []
        if len(coming) > 1:
            coming.sort(key=Transfer.order)
        left = [self._take_out(transfer, now) for transfer in coming]
        for number in sorted(self._going):
            self._shares.remove(number, now)
            self._steered.remove(number)
        self._going.clear()
        for link in sorted(self._changed):
            self._shares.set_capacity(link, self._changed[link], now)
        if self._changed:
            self._steered.refit(self._shares, self.bandwidth, now)
        self._changed.clear()
        for transfer, size in zip(coming, left, strict=True):
            self._add(transfer, size, now)
        self._shares.solve(now)
        if self._steered and not isinstance(self._shares, Unshared):
            self._look_at(self._steered.steer(cast("FairShare", self._shares), now))
        self._wake_at(self._shares.next_finish())

    def _look_at(self, time: float) -> None:
        """Solve again at `time`, when a steered transfer's course will have changed."""
        if time < self._look:
            self._look = time
            self.wakes += 1
            self.clock.call_at(time, self._look_again)

    def _look_again(self) -> None:
        self.wakes -= 1
        if self.clock.now == self._look:  # else an earlier look has been asked for since
            self._look = math.inf
            self._solve_soon()

    def _take_out(self, transfer: Transfer, now: float) -> float:
        """Bytes per unit of weight that a transfer has still to move; one with a new weight goes first."""
        if transfer.number < 0:
            return transfer.activity.size
        left = self._shares.remaining(transfer.number, now)
        self._going.append(transfer.number)
        del self._under_way[transfer.number]
        return left

    def _add(self, transfer: Transfer, size: float, now: float) -> None:
        it = transfer.activity
        shares, weights, cap = self._shares, it.weights, it.cap
        if transfer.weight != 1:  # its rate counts for 1 / weight where rates are compared
            weights, size, cap = weights * transfer.weight, size / transfer.weight, cap / transfer.weight
        if isinstance(shares, Unshared) and self.fidelity != "closed_form" and shares.users[it.links].any():
            from simulator.fairshare import FairShare

            shares = self._shares = FairShare(shares)
        transfer.number = shares.add(it.links, weights, size, cap, transfer.begin, now)
        self._under_way[transfer.number] = transfer
        if transfer.weight == 1:
            self._steered.add(transfer)

    def _wake_at(self, time: float) -> None:
        if time < self._wake:
            self._wake = max(time, self.clock.now)
            self.wakes += 1
            self.clock.call_at(self._wake, self._leave_due)

    def _leave_due(self) -> None:
        now = self.clock.now
        self.wakes -= 1
        if now != self._wake:  # an earlier finish has been found since, and dealt with
            return
        self._wake = math.inf
        for number in sorted(self._shares.due(now)):
            transfer = self._under_way.pop(number)
            transfer.number = -1
            self._going.append(number)
            self._complete(transfer)
        self._solve_soon()

    def _complete(self, transfer: Transfer) -> None:
        now, it = self.clock.now, transfer.activity
        self._obey(transfer, now)
        self._ended += 1
        self._count(transfer)
        if self.log is not None:
            total = transfer.ticks / TICKS_PER_BYTE
            self.log.append(Record(it.name, transfer.begin, now, total, transfer.src, transfer.dst, it))
        transfer.succeed(now)
        arrived = transfer.arrived
        if arrived is None:
            self._receive(transfer)
        else:
            arrived._ok, arrived._value = True, now + transfer.latency
            assert arrived.callbacks is not None
            arrived.callbacks.insert(0, lambda _: self._receive(transfer))
            self.clock.push(arrived, now + transfer.latency, NORMAL)

    def _count(self, transfer: Transfer) -> None:
        it = transfer.activity
        route = self._routes.get((transfer.src, transfer.dst))
        if route is not None and route.links is it.links:
            route.ticks += transfer.ticks
        else:
            self._link_ticks[it.links] += ticks_on_links(it)
        if transfer.account is not None:
            transfer.account.link_ticks[it.links] += ticks_on_links(it)

    def _receive(self, transfer: Transfer) -> None:
        self.received_ticks += transfer.ticks
        if transfer.account is not None:
            transfer.account.received_ticks += transfer.ticks
        del self._in_flight[transfer]

    def _obey(self, transfer: Transfer, now: float) -> None:
        """Nothing finishes before (bytes through its busiest port) / (port rate)."""
        it = transfer.activity
        route = self._routes.get((transfer.src, transfer.dst))
        if route is not None and route.links is it.links:
            least = it.size / route.bandwidth
        else:
            least = float((it.weights * it.size / self._best[it.links]).max(initial=0.0))
        if now - transfer.begin < max(least, it.size / it.cap) * _SLACK - 4 * math.ulp(now):
            raise LawError(
                f"{it.name or 'a message'} took {now - transfer.begin!r} s; "
                f"its busiest link alone needs {least!r} s"
            )
