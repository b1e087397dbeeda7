"""What to know before a run though nothing is wrong: memory too small, keys that nothing executes."""

from __future__ import annotations

from scenarios.build import workload_of
from scenarios.check import unsupported
from scenarios.loading import Study
from scenarios.machines import fabric_of, profile_of, workers_of
from scenarios.planning import StepWorkload
from scenarios.schema import Scenario
from scenarios.words import nbytes
from simulator.devices import DeviceProfile

_STATE = {3: 0, 5: 1, 7: 2}
"""Numbers an optimiser keeps per parameter, by the vectors it reads or writes."""


def notes(study: Study) -> list[str]:
    """Notes on a resolved study, each a sentence; equal ones of several variants once."""
    said = [f"not executed by this release: {error}" for error in unsupported(study)]
    for scenario in study.scenarios:
        said += memory(scenario)
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
