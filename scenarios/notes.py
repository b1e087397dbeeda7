"""What to know before a run though nothing is wrong: memory too small, a graph that diverges, unused keys."""

from __future__ import annotations

from math import ceil

import numpy as np

from scenarios.build import workload_of
from scenarios.check import unsupported
from scenarios.loading import Study
from scenarios.machines import fabric_of, profile_of, workers_of
from scenarios.planning import StepWorkload
from scenarios.schema import Scenario
from scenarios.words import nbytes
from simulator.devices import DeviceProfile
from simulator.streams import Draws

_STATE = {3: 0, 5: 1, 7: 2}
"""Numbers an optimiser keeps per parameter, by the vectors it reads or writes."""

MOST_WORKERS = 512
"""Larger matrices are not looked at."""


def notes(study: Study) -> list[str]:
    """Notes on a resolved study, each a sentence; equal ones of several variants once."""
    said = [f"not executed by this release: {error}" for error in unsupported(study)]
    for scenario in study.scenarios:
        said += [*memory(scenario), *mixing(scenario)]
    return list(dict.fromkeys(said))


def memory(scenario: Scenario) -> list[str]:
    """Devices on which, by the estimate, the model does not fit."""
    if scenario.training is None or isinstance(scenario.workload, StepWorkload):
        return []
    workers = workers_of(scenario, fabric_of(scenario))
    workload = workload_of(scenario, len(workers.profile))
    needed = workload.memory_bytes(_STATE.get(scenario.training.optimizer.passes, 2))
    return [
        f"{workload.name} with batch {workload.batch} needs about {nbytes(needed)}, a {name} has "
        f"{nbytes(profile.memory.size)}: it would not fit; it is simulated as if it did"
        for name in sorted(set(workers.profile))
        if isinstance(profile := profile_of(scenario, name), DeviceProfile) and needed > profile.memory.size
    ]


def mixing(scenario: Scenario) -> list[str]:
    """Gossip graphs on which the method is known to diverge."""
    training = scenario.training
    least = getattr(training and training.strategy, "least_eigenvalue", None)
    if training is None or training.gossip is None or least is None:
        return []
    graph, n = training.gossip, len(workers_of(scenario, fabric_of(scenario)).profile)
    name = f"{training.strategy.kind} on the graph {graph.graph}"  # type: ignore[attr-defined]
    if n > MOST_WORKERS:
        return []
    w = graph.mixing(1, n, Draws(scenario.seed)).matrix()
    if graph.period(n) != 1 or not np.allclose(w, w.T):
        return [f"{name} may diverge: its theory asks for one symmetric matrix at all steps"]
    found = float(np.linalg.eigvalsh(w)[0])
    if found > least - 1e-12:
        return []
    lazy = ceil(100 * (least - found) / (1 - found) + 1) / 100
    return [
        f"{name} will diverge: the smallest eigenvalue {found:.3f} is below {least:.3f}; try `lazy: {lazy}`"
    ]
