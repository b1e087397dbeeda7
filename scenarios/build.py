"""From a resolved scenario to a job, and its run: the only place where all four packages meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration import operations as models
from scenarios.machines import fabric_of, network_cost, others_workers, profile_of, servers_of, workers_of
from scenarios.planning import StepWorkload
from scenarios.schema import Scenario
from simulator.cost import StepTime, optimizer_seconds
from simulator.devices import ConstantDevice, DeviceProfile
from simulator.engine import Progress
from simulator.errors import InputError
from simulator.fabric import Fabric, FloatArray
from simulator.input_pipeline import Loading
from simulator.job import Job, Stop, Target
from simulator.maths import Maths
from simulator.maths.ghost import GhostMaths
from simulator.operations import Dtype
from simulator.placement import Workers
from simulator.recorder import RecordLevel
from simulator.result import Result
from simulator.run import EngineKind, run
from simulator.streams import Draws
from simulator.surroundings import OtherJob
from simulator.workload import Workload, WorkloadSpec

if TYPE_CHECKING:
    from simulator.maths.resumable import Checkpoint

Device = DeviceProfile | ConstantDevice


def simulate(
    scenario: Scenario,
    *,
    engine: EngineKind = "auto",
    record: RecordLevel = "all",
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Run one resolved scenario (one variant, one seed).

    Args:
        scenario: what to run.
        engine: as in `simulator.run.run`.
        record: what is kept.
        progress: told how far the run is.
        checkpoint: where a run of real maths is kept, to be taken up again.

    Raises:
        InputError: the scenario cannot be built.
        CohortError: `engine` is `cohort` and the method cannot run as one.
    """
    result = run(job_of(scenario, record), engine, progress, checkpoint=checkpoint)
    result.summary["variant"] = scenario.variant
    return result


def job_of(scenario: Scenario, record: RecordLevel = "all") -> Job:
    """Everything the engine needs to run a scenario."""
    fabric = fabric_of(scenario)
    servers = servers_of(scenario, fabric)
    job = _job(scenario, fabric, workers_of(scenario, fabric), servers[0], record)
    beside = zip(scenario.others, others_workers(scenario, fabric), servers[1:], strict=True)
    others = tuple(
        OtherJob(other.name, _job(_alone(scenario, index), fabric, workers, server, "summary"), other.begin)
        for index, (other, workers, server) in enumerate(beside)
    )
    network = scenario.network
    cluster = scenario.cluster
    priced = cluster.prices is not None or cluster.budget_usd is not None
    names = {**job.names, "network_cost_usd": network_cost(scenario).total if priced else None}
    return replace(
        job, link_schedule=network.schedule, background=network.background, others=others, names=names
    )


_SPREAD = 0x9E3779B97F4A7C15  # seeds of other jobs lie far apart


def _alone(scenario: Scenario, index: int) -> Scenario:
    """Another job as a scenario of its own, without real maths, with draws of its own."""
    other = scenario.others[index]
    endless = dict.fromkeys(("time", "samples", "epochs", "target"))
    return scenario.model_copy(
        update={
            "seed": (scenario.seed + (index + 1) * _SPREAD) % 2**64,
            "workload": other.workload,
            "problem": None,
            "training": other.training,
            "network": scenario.network.model_copy(update={"collective": other.collective}),
            "stragglers": other.stragglers,
            "evaluate": scenario.evaluate.model_copy(update={"every": None}),
            "stop": scenario.stop.model_copy(update={**endless, "steps": other.steps}),
        }
    )


def _job(
    scenario: Scenario, fabric: Fabric, workers: Workers, server_node: int | None, record: RecordLevel
) -> Job:
    """A job without its surroundings."""
    training = scenario.training
    if training is None:
        raise InputError("a training strategy", field="training", hint="for example kind: sync_sgd")
    find = partial(profile_of, scenario)
    n = len(workers.profile)
    workload = workload_of(scenario, n)
    costs = _per_worker(workers, lambda name: workload.step(find(name)))
    dtype: Dtype = "fp64" if workload.dtype == "fp64" else "fp32"  # weights are updated in full precision
    passes = training.optimizer.passes
    update = {
        name: optimizer_seconds(find(name), workload.parameters, passes, dtype)
        for name in set(workers.profile)
    }
    one_pass = {name: optimizer_seconds(find(name), workload.parameters, 1, dtype) for name in update}
    return Job(
        strategy=training.strategy,
        fabric=fabric,
        workers=workers,
        costs=tuple(costs),
        optimizer_seconds=np.array([update[name] for name in workers.profile]),
        optimizer=training.optimizer,
        schedule=training.schedule,
        maths=_maths(scenario, workload, n),
        stop=_stop(scenario, n),
        stragglers=scenario.stragglers,
        input=_loading(scenario, workers),
        gossip=training.gossip,
        compression=training.compression,
        item_bytes=workload.value_bytes / workload.parameters,
        fidelity=scenario.network.fidelity,
        send_ends=scenario.network.send_ends,
        message_overhead=scenario.network.message_overhead,
        algorithms=scenario.network.collective.model_dump(),
        server_node=server_node,
        server_seconds=update[workers.profile[0]],
        pass_seconds=np.array([one_pass[name] for name in workers.profile]),
        evaluate_every=scenario.evaluate.every,
        evaluate_split=scenario.evaluate.split,
        record=record,
        seed=scenario.seed,
        samples_costed=workload.batch,
        names={
            "executed": scenario.problem.name if scenario.problem else None,
            "costed": workload.name,
            "validated": False,  # no part of this release is backed by measured runs
        },
        **_worth(scenario, workload, [find(name) for name in workers.profile]),
    )


def workload_of(scenario: Scenario, n: int) -> Workload:
    """What a gradient costs: the workload named, else the problem's own model."""
    workload, problem = scenario.workload, scenario.problem
    if isinstance(workload, StepWorkload):
        raise InputError("a workload with `batch`", field="workload", hint="steps of large models: release 5")
    if workload is not None:
        return workload.build(models.load)
    if problem is None:
        raise InputError("a workload or a problem", field="workload", hint="for example resnet18")
    return Workload.of_layers(problem.name, problem.layers(), problem.batch_size(n))


def _loading(scenario: Scenario, workers: Workers) -> Loading | None:
    """How samples are loaded, if the workload says so."""
    workload = scenario.workload
    if not isinstance(workload, WorkloadSpec) or workload.input is None:
        return None
    return workload.input.loading(workload.batch, workers)


def gradient_seconds(scenario: Scenario) -> float:
    """How long an undisturbed gradient of worker 0 takes."""
    workers = workers_of(scenario, fabric_of(scenario))
    workload = workload_of(scenario, len(workers.profile))
    return workload.step(profile_of(scenario, workers.profile[0])).total


def _per_worker(workers: Workers, make: Callable[[str], StepTime]) -> list[StepTime]:
    made = {name: make(name) for name in sorted(set(workers.profile))}
    return [made[name] for name in workers.profile]


def _maths(scenario: Scenario, workload: Workload, n: int) -> Callable[[Draws], Maths]:
    problem = scenario.problem
    if problem is None:
        return lambda draws: GhostMaths(workload.value_bytes, workload.batch)

    def real(draws: Draws) -> Maths:
        from simulator.maths.torch_maths import TorchMaths  # torch is imported only where maths is executed

        return TorchMaths(problem, n, draws, workload.value_bytes, scenario.maths.dtype)

    return real


def _stop(scenario: Scenario, n: int) -> Stop:
    stop, problem = scenario.stop, scenario.problem
    samples = [float(stop.samples)] if stop.samples is not None else []
    if stop.epochs is not None and problem is not None:
        samples.append(stop.epochs * problem.train_size(n))
    target = None if stop.target is None else Target(stop.target.accuracy, stop.target.loss)
    return Stop(stop.steps, stop.time, min(samples, default=None), target)


def _worth(scenario: Scenario, workload: Workload, devices: list[Device]) -> dict[str, Any]:
    """Prices, power, peaks and memory, where all devices' profiles know them."""
    known = [device for device in devices if isinstance(device, DeviceProfile)]
    optimizer_values = {3: 0, 5: 1, 7: 2}
    training = scenario.training
    assert training is not None
    worth: dict[str, Any] = {
        "memory_bytes": workload.memory_bytes(optimizer_values.get(training.optimizer.passes, 2)),
        "flop_per_sample": workload.flop_per_sample,
    }
    if len(known) < len(devices):
        return worth
    worth["peak_flops"] = sum(d.peak.get(workload.dtype, 0.0) for d in known) or None
    worth["peak_dtype"] = workload.dtype
    if all(d.price for d in known):
        worth["usd_per_hour"] = sum(d.price.usd_per_hour for d in known if d.price)
    if all(d.power for d in known):
        worth["idle_watts"] = _column([d.power.idle for d in known if d.power])
        worth["busy_watts"] = _column([d.power.busy for d in known if d.power])
    return worth


def _column(values: list[float]) -> FloatArray:
    return np.array(values, dtype=float)
