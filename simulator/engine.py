"""The engine of one run: clock, network, maths, random draws and recorder, and what workers share."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from simulator.clock import OBSERVE, Clock
from simulator.coding import Coded, Coding, Whole
from simulator.cohort import Cohort
from simulator.collectives import Group
from simulator.errors import InputError, StuckError, VerbError
from simulator.fabric import FloatArray
from simulator.fetches import Fetches
from simulator.job import Job
from simulator.meetings import Channel
from simulator.neighbours import Letter, Mailbox, Neighbourhood, PairAverages
from simulator.network import Network
from simulator.observer import Observer
from simulator.optimizers import Optimizer, State
from simulator.recorder import Recorder
from simulator.server import Server
from simulator.stragglers import Slowdown
from simulator.streams import Draws
from simulator.surroundings import Surroundings
from simulator.values import Vector
from simulator.worker import Worker

Progress = Callable[[float, float], None]
"""Told the share done (0 .. 1, NaN if unknown) and the simulated seconds."""


ROUNDS = ("all_reduce", "all_gather", "reduce", "barrier")
"""Collectives after which a round is over."""


class Names(NamedTuple):
    """Numbers of span names that are used all the time."""

    gradient: int
    wait: int
    rounds: tuple[int, ...]


class _Update(NamedTuple):
    x: Vector
    g: Vector
    opt: State
    step: int
    optimizer: Optimizer | None
    result: tuple[Vector, State]


class Engine:
    """One run under way.

    Args:
        job: what to run.
        clock: the clock; tests give one that shuffles ties.
        network: one to share with another run, beside which this one begins now.

    Attributes:
        begin: when its workers begin, seconds.
    """

    def __init__(self, job: Job, clock: Clock | None = None, network: Network | None = None) -> None:
        self.job = job
        self.size = len(job.workers.node)
        self.clock = clock or Clock()
        self.draws = Draws(job.seed)
        self.maths = job.maths(self.draws)
        self.slowdown = Slowdown(job.stragglers, self.draws, job.workers)
        self.begin: float = self.clock.now if network is not None else 0.0
        self.network = network or Network(
            self.clock,
            job.fabric,
            fidelity=job.fidelity,
            send_ends=job.send_ends,
            message_overhead=job.message_overhead,
            log=job.record == "all",
        )
        self.recorder = Recorder(self.size, self.clock, job.record, limit=self.time_limit)
        name = self.recorder.name
        self.names = Names(name("gradient"), name("wait"), tuple(name(op) for op in ROUNDS))
        self.workers: list[Worker] = []
        self.cohort: Cohort | None = None
        self.server: Server | None = None
        self.observer: Observer | None = None
        if self.maths.metrics:
            self.observer = Observer(self, job.evaluate_every, job.evaluate_split)
        self.stopped = False
        self.pass_seconds = np.zeros(self.size) if job.pass_seconds is None else job.pass_seconds
        how = job.compression if self.size > 1 else None
        self.coding: Coding = Whole(self) if how is None else Coded(self, how)
        self._channels: dict[tuple[str | None, int], Channel] = {}
        self._mixings: dict[tuple[int, int], Neighbourhood] = {}
        self.averages = PairAverages(self)
        self.fetches = Fetches(self)
        self._mailboxes: dict[tuple[int, int], Mailbox] = {}
        self._last_update: _Update | None = None
        self._steps_counted = 0
        self._unfinished = self.size
        self.surroundings = Surroundings(self)

    # facts

    @property
    def batch(self) -> int:
        """Samples of the problem that one gradient draws."""
        return self.maths.batch

    @property
    def time_limit(self) -> float:
        """Seconds at which the run ends at the latest."""
        return math.inf if self.job.stop.time is None else self.job.stop.time

    @property
    def next_observation(self) -> float:
        """Up to this time only the newest model will be asked for; -inf if that may be at any time."""
        if self.job.stop.samples is not None:
            return -math.inf
        return min(self.observer.next_time if self.observer else math.inf, self.time_limit)

    @property
    def has_events(self) -> bool:
        """Whether anything else is on the clock."""
        return self.clock.peek() < math.inf

    def step_limit(self, pace: float) -> float:
        """Steps a worker takes at most; `pace` as in `Worker.steps`."""
        steps = self.job.stop.steps
        return math.inf if steps is None else math.floor(steps * pace * (1 + 1e-12))

    def lr(self, step: int) -> float:
        """Learning rate of a step, schedule included."""
        return self.job.optimizer.lr * self.job.schedule.factor(step)

    def apply(
        self, x: Vector, g: Vector, opt: State, step: int, optimizer: Optimizer | None = None
    ) -> tuple[Vector, State]:
        """One update of the scenario's optimiser, or of another at its own learning rate.

        Workers that hold the same values (after a global mean) share the result: values are immutable.
        """
        last = self._last_update
        if last and last.x is x and last.g is g and last.opt is opt and last[3:5] == (step, optimizer):
            return last.result
        if optimizer is None:
            result = self.job.optimizer.apply(x, g, opt, self.lr(step))
        else:
            result = optimizer.apply(x, g, opt)
        self._last_update = _Update(x, g, opt, step, optimizer, result)
        return result

    def message_sizes(self, nbytes: float, packed: bool) -> list[float]:
        """Bytes of the messages that so many bytes of a model travel in: one, or one a layer."""
        if packed:
            return [nbytes]
        layers = self.job.costs[0].nbytes
        sizes: list[float] = (layers * (nbytes / layers.sum())).tolist()
        return sizes

    def update_seconds(self, optimizer: Optimizer | None) -> FloatArray:
        """Time of an update on each worker's device, by the scenario's optimiser or another, shape (n,)."""
        if optimizer is None:
            return self.job.optimizer_seconds
        return optimizer.passes * self.pass_seconds

    # who meets whom

    def channel(self, over: str | None, rank: int) -> Channel:
        """The group a worker meets in: all, those of its `server` (host), or `across` hosts.

        Or all and the `master`: the method's server, the last member of that group.
        """
        if over == "master":
            return self._master_channel()
        hosts, devices = self.job.workers.host, self.job.workers.device
        key = (over, 0 if over is None else int((hosts if over == "server" else devices)[rank]))
        channel = self._channels.get(key)
        if channel is None:
            ranks = np.arange(self.size)
            if over is not None:
                ranks = np.flatnonzero((hosts if over == "server" else devices) == key[1])
            channel = self._channels[key] = self._new_channel(ranks, "all workers" if over is None else over)
        return channel

    def _master_channel(self) -> Channel:
        channel = self._channels.get(("master", 0))
        if channel is None:
            workers, node = self.job.workers, self.job.server_node
            assert node is not None, "the strategy has no server"
            nodes, hosts = np.append(workers.node, node), np.append(workers.host, workers.host.max() + 1)
            group = Group(self.network, nodes, hosts=hosts, algorithms=self.job.algorithms)
            channel = Channel(group, np.arange(self.size + 1), "all workers and the master")
            self._channels["master", 0] = channel
        return channel

    def _new_channel(self, ranks: np.ndarray, label: str) -> Channel:
        workers = self.job.workers
        group = Group(
            self.network, workers.node[ranks], hosts=workers.host[ranks], algorithms=self.job.algorithms
        )
        return Channel(group, ranks, label)

    def mixing(self, step: int, number: int, *, shared_out: bool = False) -> Neighbourhood:
        """The gossip round of that number within a step, the same for all workers.

        Args:
            step: the workers' step.
            number: which round of the step, from 1.
            shared_out: with even shares of each worker's value instead of the graph's weights.
        """
        found = self._mixings.get((step, number))
        if found is None:
            weights = self._graph().mixing(step, self.size, self.draws)
            if shared_out:
                weights = weights.shared_out()
            found = Neighbourhood(self.network, self.job.workers.node, step, weights)
            self._mixings = {k: m for k, m in self._mixings.items() if not m.over}
            self._mixings[step, number] = found
        return found

    def _graph(self) -> Any:
        if self.job.gossip is None:
            raise InputError("a graph", field="training.gossip", hint="for example `gossip: {graph: ring}`")
        return self.job.gossip

    def draw_peer(self, rank: int, step: int) -> int:
        """One of a worker's candidate peers at its own step."""
        peers = self._graph().neighbours(rank, step, self.size, self.draws)
        if not len(peers):
            return rank
        return int(peers[self.draws.choice("gossip/peer", step, rank, len(peers))])

    def collect(self, dst: int) -> list[Vector]:
        """What has arrived for a worker and nobody expected, in the order of senders' ranks."""
        boxes = [self._mailboxes[key] for key in sorted(self._mailboxes) if key[1] == dst]
        return [letter.value for box in boxes for letter in box.collect()]

    def post(self, src: int, dst: int, value: Vector, nbytes: float, at: float) -> Letter:
        """Send a value, so many bytes of it, from worker to worker."""
        return self._mailbox(src, dst).post(value, nbytes, at)

    def expect(self, src: int, dst: int) -> Letter:
        """The next value from worker to worker."""
        return self._mailbox(src, dst).expect()

    def _mailbox(self, src: int, dst: int) -> Mailbox:
        for rank in (src, dst):
            if not 0 <= rank < self.size:
                raise VerbError(f"there is no worker {rank!r}: ranks are 0 to {self.size - 1}")
        return self._mailboxes.setdefault((src, dst), Mailbox(self, src, dst))

    def the_server(self) -> Server:
        """The parameter server."""
        assert self.server is not None, "the strategy has no server"
        return self.server

    # the models

    def model_now(self) -> Vector:
        """The method's model: the server's, else the outer model, else the mean of the workers'."""
        if self.server is not None and self.server.version >= 0:
            return self.server.model
        outer = (self.cohort or self.workers[0]).outers.at(self.clock.now)
        if outer is not None:
            return outer
        if self.cohort is not None:
            return self.cohort.models_at(self.clock.now)
        models = [worker.model_at(self.clock.now) for worker in self.workers]
        if all(model is models[0] for model in models):
            return models[0]
        return self.maths.mean(models)

    def models_now(self) -> list[Vector] | Vector:
        """Every worker's own model: a list, or a cohort's value."""
        if self.cohort is not None:
            return self.cohort.models_at(self.clock.now)
        return [worker.model_at(self.clock.now) for worker in self.workers]

    def rounds(self) -> int | None:
        """Synchronisations that every worker has been through; None for a method without any."""
        if self.cohort is not None:
            return self.cohort.rounds(self.clock.now)
        counts = [worker.rounds for worker in self.workers]
        return min(counts) if max(counts) else None

    def see_report(self, who: str, reported: bool) -> None:
        """At the end of a step: evaluations must know the model.

        Raises:
            VerbError: the method has no server and reports no model.
        """
        if self.observer is not None and self.server is None and not reported:
            raise VerbError(f"{who} ended a step and never told its model: write `w.report(x)` in each step")

    # the end

    def step_ended(self, end: float) -> None:
        """A worker has ended a step at `end`; stops the run once the samples are reached."""
        if self.job.stop.samples is None:
            return
        self.clock.call_at(end, self._count_step, OBSERVE)

    def _count_step(self) -> None:
        self._steps_counted += 1
        assert self.job.stop.samples is not None
        if self._steps_counted * self.batch >= self.job.stop.samples:
            # What ends at this very instant still counts: stop behind it.
            self.clock.end_of_instant(self.stop, OBSERVE + 1)

    def worker_finished(self, workers: int = 1) -> None:
        """So many workers have taken all their steps."""
        self._unfinished -= workers
        if not self._unfinished:
            self.clock.end_of_instant(self.stop, OBSERVE + 1)

    def stop(self) -> None:
        """End the run at this time."""
        self.stopped = True

    def run(
        self, progress: Progress | None = None, after_event: Callable[[int], None] | None = None
    ) -> float:
        """Run until the stop; returns the time (seconds) at which the run was cut.

        Args:
            progress: told how far the run is.
            after_event: told after each event how many there have been.

        Raises:
            StuckError: nothing more will happen and workers have not finished.
        """
        if self.observer:
            self.observer.plan()
        self.surroundings.begin()
        clock, limit, told, events = self.clock, self.time_limit, monotonic(), 0
        while not self.stopped:
            time = clock.peek()
            if time > limit:
                clock.advance(limit)  # the last evaluation sees what was reported up to the limit
                return limit
            if time == math.inf:
                raise StuckError(self._stuck())
            clock.step()
            events += 1
            if after_event:
                after_event(events)
            if not events & 4095 and self._only_strangers_move():
                raise StuckError(self._stuck())
            if progress and not events & 255 and monotonic() - told > 0.1:
                told = monotonic()
                progress(self._share_done(), clock.now)
        return clock.now

    def _share_done(self) -> float:
        stop, shares = self.job.stop, [0.0]
        if stop.time is not None:
            shares.append(self.clock.now / stop.time)
        if stop.steps:
            steps = [w.step - 1 for w in self.workers] or [self.cohort.step - 1 if self.cohort else 0]
            shares.append(sum(steps) / (stop.steps * len(steps)))
        if stop.samples:
            shares.append(self._steps_counted * self.batch / stop.samples)
        return min(max(shares), 1.0)

    def _only_strangers_move(self) -> bool:
        """Whether background traffic is all that keeps the clock going."""
        if not self.surroundings.keeps_clock_busy or self.network.unaccounted_in_flight:
            return False
        return self.clock.waiting <= self.network.wakes + (self.observer is not None)

    def _stuck(self) -> str:
        if self.cohort is not None:
            return f"the run cannot go on: {self.cohort.stuck()}"
        waits = [text for worker in self.workers if (text := worker.stuck()) is not None]
        more = f"\n  and {len(waits) - 12} more" if len(waits) > 12 else ""
        return "the run cannot go on: every worker waits\n  " + "\n  ".join(waits[:12]) + more
