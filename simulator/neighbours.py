"""Exchanges between chosen workers: gossip with a step's neighbours, averages of pairs, letters."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from simpy.events import Event

from simulator.coding import Whole
from simulator.fabric import IntArray
from simulator.maths import Maths
from simulator.network import Activity, Network
from simulator.values import Vector

if TYPE_CHECKING:
    from simulator.engine import Engine
    from simulator.peers import Mixing


class Neighbourhood:
    """One step of gossip in lock step: every worker sends to those that mix its value in.

    A message starts when both its ends have come; a worker goes on when all it receives has arrived and all
    it sends has left. Waiting ends when the last neighbour has come.
    """

    def __init__(self, network: Network, nodes: IntArray, step: int, mixing: Mixing) -> None:
        self._network = network
        self._nodes = nodes
        self._step = step
        self._weights = mixing
        n = len(nodes)
        self._sources = [row[row >= 0].tolist() for row in mixing.peers]
        self._targets: list[list[int]] = [[] for _ in range(n)]
        for rank, sources in enumerate(self._sources):
            for source in sources:
                self._targets[source].append(rank)
        self._values: list[Vector | None] = [None] * n
        self._sizes = [0.0] * n
        self._masses = [1.0] * n
        self._came = [math.nan] * n
        self._began = [math.nan] * n
        self._missing = [len({*s, *t}) for s, t in zip(self._sources, self._targets, strict=True)]
        self._events = [len(s) + len(t) for s, t in zip(self._sources, self._targets, strict=True)]
        self._leaves = [Event(network.clock) for _ in range(n)]
        self._left = 0

    def arrive(self, rank: int, at: float, value: Vector, nbytes: float, mass: float = 1.0) -> None:
        """A worker has come at `at` (seconds, not before now).

        Args:
            rank: the worker.
            at: when.
            value: what it brings.
            nbytes: what travels of it to each neighbour.
            mass: of the value, in push-sum.
        """
        self._masses[rank], self._sizes[rank] = mass, nbytes
        self._came[rank] = at
        self._values[rank] = value
        around = {*self._sources[rank], *self._targets[rank]}
        here = [peer for peer in sorted(around) if not math.isnan(self._came[peer])]
        for peer in here:
            self._missing[peer] -= 1
            self._missing[rank] -= 1
        for worker in (rank, *here):
            if not self._missing[worker]:
                self._begin(worker)
        if self._network.fidelity != "closed_form":
            for peer in here:
                self._exchange(rank, peer)

    def _begin(self, rank: int) -> None:
        around = {rank, *self._sources[rank], *self._targets[rank]}
        self._began[rank] = max(self._came[peer] for peer in around)
        if not self._events[rank]:
            self._network.clock.call_at(self._began[rank], lambda: self._leave(rank))
        elif self._network.fidelity == "closed_form":
            self._begin_alone(rank)

    def _begin_alone(self, rank: int) -> None:
        """Closed form: all that the worker sends and receives, sharing its own links and nobody else's."""
        src = np.array([rank] * len(self._targets[rank]) + self._sources[rank])
        dst = np.array(self._targets[rank] + [rank] * len(self._sources[rank]))
        fabric = self._network.fabric
        paths = fabric.router.paths(self._nodes[src], self._nodes[dst])
        links, counts = np.unique(paths[paths >= 0], return_counts=True)
        nbytes = self._sizes[rank]
        sent = nbytes * len(self._targets[rank])
        activity = Activity(links, counts.astype(float), nbytes, total_bytes=sent, name="neighbour_mean")
        latency = float(fabric.path_latency(paths).max())
        done = self._network.start(activity, self._began[rank])
        assert done.callbacks is not None

        def leave_later(event: Event) -> None:
            self._network.clock.call_at(float(event.value or 0.0) + latency, lambda: self._leave(rank))

        done.callbacks.append(leave_later)

    def _exchange(self, rank: int, peer: int) -> None:
        start = max(self._came[rank], self._came[peer])
        for src, dst in ((rank, peer), (peer, rank)):
            if dst in self._targets[src]:
                message = self._network.message(
                    int(self._nodes[src]), int(self._nodes[dst]), self._sizes[src], start
                )
                self._count_down(message.left, src)
                self._count_down(message.arrived, dst)

    def _count_down(self, event: Event, rank: int) -> None:
        def one_less(_: Event) -> None:
            self._events[rank] -= 1
            if not self._events[rank]:
                self._leave(rank)

        assert event.callbacks is not None
        event.callbacks.append(one_less)

    def _leave(self, rank: int) -> None:
        self._leaves[rank].succeed()
        self._left += 1

    @property
    def over(self) -> bool:
        """Whether all have left."""
        return self._left == len(self._leaves)

    def leaves(self, rank: int) -> Event:
        """Fires when the worker has all it receives and its own has left."""
        return self._leaves[rank]

    def sent_by(self, rank: int) -> float:
        """Bytes the worker sends."""
        return self._sizes[rank] * len(self._targets[rank])

    def receives(self, rank: int) -> int:
        """Values that come to the worker."""
        return len(self._sources[rank])

    def total(self, rank: int, maths: Maths) -> tuple[Vector, float]:
        """The worker's row of the matrix times all values, and times all masses; rows need not sum to one."""
        around = [rank, *self._sources[rank]]
        weights = [
            float(self._weights.self_weight[rank]),
            *self._weights.weights[rank, : len(around) - 1].tolist(),
        ]
        masses = [weight * self._masses[i] for i, weight in zip(around, weights, strict=True)]
        return self.mean(rank, maths) * sum(weights), sum(masses)

    def mean(self, rank: int, maths: Maths) -> Vector:
        """The worker's row of the mixing matrix times all values."""
        sources = self._sources[rank]
        own = self._values[rank]
        values = [own, *(self._values[s] for s in sources)]
        weights = [
            float(self._weights.self_weight[rank]),
            *self._weights.weights[rank, : len(sources)].tolist(),
        ]
        order = np.argsort([rank, *sources], kind="stable").tolist()  # in rank order, as an all-reduce adds
        there: Sequence[Vector] = [v for v in (values[i] for i in order) if v is not None]
        return maths.mean(there, [weights[i] for i in order])

    def began_for(self, rank: int) -> float:
        """See `line.Blocked`."""
        return self._began[rank]

    def waits_for(self, rank: int) -> str:
        """See `line.Blocked`."""
        absent = [p for p in (*self._sources[rank], *self._targets[rank]) if math.isnan(self._came[p])]
        return f"neighbours {sorted(set(absent))} in step {self._step}"


class PairAverages:
    """Averages of pairs of models. Those that end at one instant see all steps that end there.

    Ties are decided here: they are made one after the other, in the order of the workers that asked.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._beginning: list[PairAverage] = []
        self._ending: list[PairAverage] = []
        self._settling = False

    def ask(self, rank: int, peer: int) -> PairAverage:
        """A worker wants to average with a peer, now."""
        average = PairAverage(self._engine, rank, peer, self._ends)
        self._beginning.append(average)
        self._settle_soon()
        return average

    def _ends(self, average: PairAverage) -> None:
        self._ending.append(average)
        self._settle_soon()

    def _settle_soon(self) -> None:
        if not self._settling:
            self._settling = True
            self._engine.clock.end_of_instant(self._settle)

    def _settle(self) -> None:
        self._settling = False
        ending, self._ending = sorted(self._ending, key=lambda a: a.rank), []
        beginning, self._beginning = self._beginning, []
        for average in ending:
            average.make()
        for average in sorted(beginning, key=lambda a: a.rank):
            average.begin()
        for average in ending:
            average.done.succeed()


class PairAverage:
    """Two models on their way to each other; both become their mean when they have crossed.

    The mean is of what the two hold then, so that an average is atomic: of several under way with one
    worker each shrinks the distance between models, as in the analysis of the method. Halves of differences
    from the beginnings would add up: two workers that ask each other at once would trade places.
    """

    def __init__(self, engine: Engine, rank: int, peer: int, ends: Callable[[PairAverage], None]) -> None:
        self._engine = engine
        self._ends = ends
        self._began = engine.clock.now
        self.rank, self.peer = rank, peer
        self.done = Event(engine.clock)

    def begin(self) -> None:
        """Both send what they hold."""
        network = self._engine.network
        here, there = self._engine.job.workers.node[[self.rank, self.peer]].tolist()
        out = network.message(here, there, self.sent_by(self.rank))
        back = network.message(there, here, self.sent_by(self.peer))
        both = out.arrived & back.arrived
        assert both.callbacks is not None
        both.callbacks.append(lambda _: self._ends(self))

    def make(self) -> None:
        """Both models become their mean."""
        mine, theirs = self._engine.workers[self.rank], self._engine.workers[self.peer]
        coding = self._engine.coding
        if isinstance(coding, Whole):
            mean = self._engine.maths.mean([mine.model, theirs.model])
            mine.replace_model(mean)
            theirs.replace_model(mean)
            return
        told = coding.model("average_with", self.rank, mine.model)
        heard = coding.model("average_with", self.peer, theirs.model)
        half = (heard - told) * 0.5  # what both know, so that the sum of the models stays
        mine.replace_model(mine.model + half)
        theirs.replace_model(theirs.model - half)

    def sent_by(self, rank: int) -> float:
        """Bytes the worker sends."""
        return self._engine.coding.size(self._engine.workers[rank].model.nbytes)

    def began_for(self, rank: int) -> float:
        """The peer answers at once: nobody waits."""
        return self._began

    def waits_for(self, rank: int) -> str:
        """See `line.Blocked`."""
        return f"the models of workers {self.rank} and {self.peer} to cross"


class Letter:
    """A value on its way from one worker to another, or expected by it."""

    def __init__(self, engine: Engine, src: int, dst: int) -> None:
        self._engine = engine
        self._src, self._dst = src, dst
        self._began = math.nan
        self._value: Vector | None = None
        self.left = Event(engine.clock)
        self.arrived = Event(engine.clock)

    def post(self, value: Vector, nbytes: float, at: float) -> None:
        """The sender hands it over at `at` (seconds); so many bytes travel."""
        self._value, self._began = value, at
        nodes = self._engine.job.workers.node
        message = self._engine.network.message(int(nodes[self._src]), int(nodes[self._dst]), nbytes, at)
        follow(message.left, self.left)
        follow(message.arrived, self.arrived)

    @property
    def value(self) -> Vector:
        """What was sent."""
        assert self._value is not None
        return self._value

    def began_for(self, rank: int) -> float:
        """When the sender handed it over."""
        return self._began

    def waits_for(self, rank: int) -> str:
        """See `line.Blocked`."""
        return f"a message from worker {self._src} to worker {self._dst}"


def follow(event: Event, follower: Event) -> None:
    """Let `follower` happen when `event` does."""

    def happen(_: Event) -> None:
        follower.succeed()

    assert event.callbacks is not None
    event.callbacks.append(happen)


def one_after_another(network: Network, src: int, dst: int, sizes: Sequence[float]) -> tuple[Event, Event]:
    """Messages from node to node, each when the one before has arrived.

    Returns:
        The events that the last has left and that it has arrived.
    """
    if len(sizes) == 1:
        message = network.message(src, dst, sizes[0])
        return message.left, message.arrived
    left, arrived = Event(network.clock), Event(network.clock)

    def send(index: int) -> None:
        message = network.message(src, dst, sizes[index])
        if index == len(sizes) - 1:
            follow(message.left, left)
            follow(message.arrived, arrived)
        else:
            assert message.arrived.callbacks is not None
            message.arrived.callbacks.append(lambda _: send(index + 1))

    send(0)
    return left, arrived


class Mailbox:
    """Letters from one worker to another, in the order of sending."""

    def __init__(self, engine: Engine, src: int, dst: int) -> None:
        self._engine, self._src, self._dst = engine, src, dst
        self._sent: deque[Letter] = deque()
        self._expected: deque[Letter] = deque()

    def collect(self) -> list[Letter]:
        """Letters that have arrived and that nobody expected, taken out."""
        here = [letter for letter in self._sent if letter.arrived.triggered]
        self._sent = deque(letter for letter in self._sent if not letter.arrived.triggered)
        return here

    def post(self, value: Vector, nbytes: float, at: float) -> Letter:
        """The next letter sent."""
        if self._expected:
            letter = self._expected.popleft()
        else:
            letter = Letter(self._engine, self._src, self._dst)
            self._sent.append(letter)
        letter.post(value, nbytes, at)
        return letter

    def expect(self) -> Letter:
        """The next letter to be received."""
        if self._sent:
            return self._sent.popleft()
        letter = Letter(self._engine, self._src, self._dst)
        self._expected.append(letter)
        return letter
