"""Small jobs for tests of the engine, built without scenario files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.cost import StepTime
from simulator.fabric import Fabric
from simulator.job import Job, Stop
from simulator.maths.ghost import GhostMaths
from simulator.optimizers import Sgd
from simulator.placement import Workers
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
    """Makes a job: strategy, then any field of `Job`; `n` workers on a star, `nbytes` on the wire."""

    def make(
        strategy: Any, n: int = 4, nbytes: float = 40e6, fabric: Fabric | None = None, **fields: Any
    ) -> Job:
        fabric = fabric or star(n, extra_hosts=int(strategy.has_server))
        stragglers = fields.pop("stragglers", (LOGNORMAL,))
        given = {
            "strategy": strategy,
            "fabric": fabric,
            "workers": Workers.of(fabric, Placement(workers=n).place(fabric)),
            "costs": (step_time(nbytes=nbytes),) * n,
            "optimizer_seconds": np.full(n, 0.002),
            "optimizer": Sgd(lr=0.1),
            "schedule": Constant(),
            "maths": lambda draws: GhostMaths(nbytes, 32),
            "stop": Stop(steps=20),
            "stragglers": tuple(StragglerSpec.model_validate(s) for s in stragglers),
            "server_node": int(fabric.hosts[-1]) if strategy.has_server else None,
            "samples_costed": 32,
        }
        return Job(**(given | fields))

    return make
