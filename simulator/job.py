"""What a run is made of: everything the engine needs, built from a scenario by `scenarios.build`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.background import BackgroundFlows
from simulator.compression import Compression
from simulator.cost import StepTime
from simulator.fabric import Fabric, FloatArray
from simulator.input_pipeline import Loading
from simulator.link_schedule import LinkChange
from simulator.maths import Maths
from simulator.network import Fidelity, SendEnds
from simulator.optimizers import Optimizer
from simulator.placement import Workers
from simulator.recorder import RecordLevel
from simulator.schedules import Schedule
from simulator.stragglers import StragglerSpec
from simulator.strategies.base import Strategy
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.peers import PeerGraph
    from simulator.surroundings import OtherJob


@dataclass(frozen=True)
class Target:
    """What a run is after: the first evaluation that meets all that is given ends it."""

    accuracy: float | None = None
    loss: float | None = None


@dataclass(frozen=True)
class Stop:
    """When a run ends: whatever comes first. Without any limit a run never ends, so one is required.

    Attributes:
        steps: local steps of each worker.
        time: simulated seconds.
        samples: of all workers together, counted at the ends of steps.
        target: quality to reach.
    """

    steps: int | None = None
    time: float | None = None
    samples: float | None = None
    target: Target | None = None


@dataclass(frozen=True)
class Job:
    """One run: one variant, one seed.

    Attributes:
        strategy: the training method.
        fabric: the physical network.
        workers: where they sit.
        costs: time of a gradient on each worker's device, by rank.
        optimizer_seconds: time of one update on each worker's device, shape (n,).
        optimizer, schedule: the scenario's.
        maths: makes the run's maths; called with its random draws.
        stop: when it ends.
        stragglers: what slows workers down.
        input: how long samples take to load; None: they are there.
        gossip: who may exchange with whom, if the scenario names a graph.
        fidelity, send_ends, message_overhead, algorithms: of the network and its collectives.
        server_node: where a parameter server lives, None without one.
        server_seconds: time of one update there.
        pass_seconds: time to read or write one vector of the model's size on each worker's device, shape
            (n,); None: no time.
        compression: of values on their way; None: they travel as they are.
        item_bytes: of an entry of a value as it is on the wire.
        link_schedule, background, others: what goes on around the run.
        evaluate_every: seconds between evaluations; None for the start and the end only.
        evaluate_split: which samples evaluations use.
        record: what is kept.
        seed: of all random draws.
        samples_costed: samples that one gradient costs (the workload's batch).
        names: what was executed and costed, for the summary.
        flop_per_sample: of the workload, forward and backward.
        peak_flops, peak_dtype: of all workers' devices together, FLOP/s of the type computed in; None if
            unknown.
        usd_per_hour: of all workers' devices together; None if a profile has no price.
        idle_watts, busy_watts: of each worker's device, shape (n,); None if a profile has no power.
        memory_bytes: estimate for the worst device.
    """

    strategy: Strategy
    fabric: Fabric
    workers: Workers
    costs: tuple[StepTime, ...]
    optimizer_seconds: FloatArray
    optimizer: Optimizer
    schedule: Schedule
    maths: Callable[[Draws], Maths]
    stop: Stop
    stragglers: tuple[StragglerSpec, ...] = ()
    input: Loading | None = None
    gossip: PeerGraph | None = None
    fidelity: Fidelity = "bundles"
    send_ends: SendEnds = "left"
    message_overhead: float = 0.0
    algorithms: Mapping[str, str | int] = field(default_factory=dict)
    server_node: int | None = None
    server_seconds: float = 0.0
    pass_seconds: FloatArray | None = None
    compression: Compression | None = None
    item_bytes: float = 4.0
    link_schedule: tuple[LinkChange, ...] = ()
    background: tuple[BackgroundFlows, ...] = ()
    others: tuple[OtherJob, ...] = ()
    evaluate_every: float | None = None
    evaluate_split: str = "test"
    record: RecordLevel = "all"
    seed: int = 1
    samples_costed: int = 0
    names: Mapping[str, Any] = field(default_factory=dict)
    flop_per_sample: float = 0.0
    peak_flops: float | None = None
    peak_dtype: str | None = None
    usd_per_hour: float | None = None
    idle_watts: FloatArray | None = None
    busy_watts: FloatArray | None = None
    memory_bytes: float | None = None

    def __post_init__(self) -> None:
        assert len(self.costs) == len(self.workers.node) == len(self.optimizer_seconds)
        assert np.isfinite(self.optimizer_seconds).all()
