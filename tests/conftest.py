"""Small jobs for tests of the engine, built without scenario files."""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappush
from typing import Any

import numpy as np
import pytest

from simulator.clock import Clock
from simulator.cost import StepTime
from simulator.engine import Engine
from simulator.fabric import Fabric
from simulator.job import Job, Stop
from simulator.maths.ghost import GhostMaths
from simulator.optimizers import Sgd
from simulator.placement import Workers
from simulator.problems import Problem
from simulator.run import start_cohort, start_workers
from simulator.schedules import Constant
from simulator.stragglers import StragglerSpec
from topologies import Placement, Star

LOGNORMAL = {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}}


def star(n: int, bandwidth: str = "1 GB/s", latency: str = "10 us", extra_hosts: int = 0) -> Fabric:
    """n single-device hosts behind a switch; `latency` is of one link, half the way."""
    spec = {
        "kind": "star",
        "hosts": n,
        "link": {"bandwidth": bandwidth, "latency": latency},
        "host": {"kind": "cpu_only", "devices": {"count": 1}},
    }
    return Star.model_validate(spec).build(extra_hosts=extra_hosts)


def step_time(seconds: float = 0.1, nbytes: float = 40e6, layers: int = 4) -> StepTime:
    """A gradient whose layers come evenly in the second two thirds of its time."""
    ready = seconds / 3 + np.arange(1, layers + 1) / layers * (2 * seconds / 3)
    return StepTime.of(seconds / 3, seconds, ready, np.full(layers, nbytes / layers))


JobMaker = Callable[..., Job]


@pytest.fixture
def make_job() -> JobMaker:
    """Makes a job: strategy, then any field of `Job`; `n` workers on a star, `nbytes` on the wire.

    `seconds` a gradient, `bandwidth` and `latency` of each link; `problem` computes for real, in float64.
    """

    def make(
        strategy: Any,
        n: int = 4,
        nbytes: float = 40e6,
        *,
        seconds: float = 0.1,
        fabric: Fabric | None = None,
        bandwidth: str = "1 GB/s",
        latency: str = "10 us",
        problem: Problem | None = None,
        **fields: Any,
    ) -> Job:
        fabric = fabric or star(n, bandwidth, latency, extra_hosts=int(strategy.has_server))
        stragglers = fields.pop("stragglers", (LOGNORMAL,))
        given = {
            "strategy": strategy,
            "fabric": fabric,
            "workers": Workers.of(fabric, Placement(workers=n).place(fabric)),
            "costs": (step_time(seconds, nbytes),) * n,
            "optimizer_seconds": np.full(n, 0.002),
            "optimizer": Sgd(lr=0.1),
            "schedule": Constant(),
            "maths": maths_of(problem, n, nbytes),
            "stop": Stop(steps=20),
            "stragglers": tuple(StragglerSpec.model_validate(s) for s in stragglers),
            "server_node": int(fabric.hosts[-1]) if strategy.has_server else None,
            "samples_costed": 32,
        }
        return Job(**(given | fields))

    return make


def maths_of(problem: Problem | None, n: int, nbytes: float) -> Callable[[Any], Any]:
    """What a run computes with: a problem in float64, or ghosts whose gradients count 32 samples."""
    if problem is None:
        return lambda draws: GhostMaths(nbytes, 32)

    def real(draws: Any) -> Any:
        from simulator.maths.torch_maths import TorchMaths

        return TorchMaths(problem, n, draws, nbytes, "float64")

    return real


@pytest.fixture
def finished() -> Callable[..., Engine]:
    """Runs a job to its end and gives the engine, with its workers, server and models."""

    def finish(job: Job, kind: str = "process", clock: Clock | None = None) -> Engine:
        engine = Engine(job, clock)
        start_cohort(engine) if kind == "cohort" else start_workers(engine)
        engine.run()
        return engine

    return finish


class ShuffledTies(Clock):
    """Events of one instant and one priority come in a random order; who created an event does not matter."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._number = 0

    def schedule(self, event: Any, priority: int = 1, delay: float = 0) -> None:
        self.push(event, self._now + delay, priority)

    def push(self, event: Any, time: float, priority: int) -> None:
        self._number += 1
        # URGENT events (a process's start and interrupts) keep their order: SimPy itself relies on it.
        shuffle = self._random.random() if priority else 0.0
        heappush(self._queue, (time, priority, (shuffle, self._number), event))


@pytest.fixture
def shuffled_ties() -> type[Clock]:
    """A clock that shuffles ties, made with a seed."""
    return ShuffledTies
