"""The steps of one call on the network: each begins when all it waits for is there."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from simpy.events import Event

from simulator.clock import AFTER_ALL
from simulator.collectives.laid import LaidPlan
from simulator.collectives.progress import progress
from simulator.network import Activity, Network


class Running:
    """Steps under way.

    Args:
        network: carries them.
        laid: the plan.
        nbytes: size of the buffer.
        ended: called with (step, time its bytes left, time they arrived) when the last byte leaves.
    """

    def __init__(
        self, network: Network, laid: LaidPlan, nbytes: float, ended: Callable[[int, float, float], None]
    ) -> None:
        self._network = network
        self._laid = laid
        self._nbytes = nbytes
        self._ended = ended
        self._waits = laid.waits.copy()
        self._teams: dict[int, int] = {}
        self._ready = [-math.inf] * len(laid.steps)

    def begin(self, at: float) -> None:
        """Start the steps that wait for nothing."""
        for step in self._laid.first:
            self._start(step, at)

    def release(self, step: int, at: float) -> None:
        """One of the things `step` waits for is there at `at`; the last one starts it."""
        if at > self._ready[step]:
            self._ready[step] = at
        self._waits[step] -= 1
        if not self._waits[step]:
            self._start(step, self._ready[step])

    def _start(self, step: int, at: float) -> None:
        load, network = self._laid.loads[step], self._network
        if load.part.single and network.fidelity != "closed_form":
            src, dst = self._laid.nodes[load.part.src[0]], self._laid.nodes[load.part.dst[0]]
            sent = network.message(src, dst, load.part.share * self._nbytes, at)
            self._follow(step, sent.left, load.max_latency)
        else:  # what its links give is asked when it begins, after all that changes them at that instant
            network.clock.call_at(at, partial(self._start_bundle, step, at), AFTER_ALL)

    def _start_bundle(self, step: int, at: float) -> None:
        network = self._network
        self._laid.keep_up(network)
        load, ends = self._laid.loads[step], network.send_ends
        chunk = load.part.share * self._nbytes
        size = chunk * load.part.rounds
        begin = at + (load.overhead if load.part.rounds == 1 else 0.0)  # else in the cap
        total = size * len(load.part.src)
        activity = Activity(load.links, load.weights, size, load.cap(chunk, ends), total, self._laid.name)
        if network.fidelity == "bundles":
            activity.steering = progress(load, chunk, ends, begin, self._team(step))
        self._follow(step, network.start(activity, begin), load.after(chunk, ends))

    def _follow(self, step: int, left: Event, after: float) -> None:
        assert left.callbacks is not None
        left.callbacks.append(partial(self._left, step, after))

    def _team(self, step: int) -> int:
        """Rings of one stage of a call turn in step."""
        stage = self._laid.steps[step].stage
        team = self._teams.get(stage)
        if team is None:
            team = self._teams[stage] = self._network.new_team()
        return team

    def _left(self, step: int, after: float, event: Event) -> None:
        left = float(event.value)  # type: ignore[arg-type]
        arrived = left + after
        sent = arrived if self._network.send_ends == "arrived" else left
        for follower in self._laid.on_left[step]:
            self.release(follower, sent)
        for follower in self._laid.on_arrived[step]:
            self.release(follower, arrived)
        self._ended(step, left, arrived)
