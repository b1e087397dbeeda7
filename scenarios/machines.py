"""The machines of a scenario: its device profiles, its network, where its workers sit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from calibration import profiles
from simulator.devices import ConstantDevice, DeviceProfile, Nvlink
from simulator.fabric import Fabric
from simulator.placement import Workers

if TYPE_CHECKING:
    from scenarios.schema import Scenario


def profile_of(scenario: Scenario, name: str) -> DeviceProfile | ConstantDevice:
    """A device profile by name: the scenario's own, or a shipped one.

    Raises:
        InputError: no such profile.
    """
    own = scenario.profiles.get(name)
    return own if own is not None else profiles.load(name)


def fabric_of(scenario: Scenario) -> Fabric:
    """The network, with a host of its own for the server if the method has one.

    Raises:
        Impossible: the topology cannot be.
    """
    has_server = scenario.training is not None and scenario.training.strategy.has_server
    extra = scenario.cluster.placement.extra_hosts if has_server else 0
    return scenario.cluster.topology.build(partial(_nvlink, scenario), extra_hosts=extra, seed=scenario.seed)


def workers_of(scenario: Scenario, fabric: Fabric) -> Workers:
    """The workers on the devices of the fabric.

    Raises:
        Impossible: they do not fit.
    """
    return Workers.of(fabric, scenario.cluster.placement.place(fabric, scenario.seed))


def _nvlink(scenario: Scenario, name: str) -> Nvlink | None:
    profile = profile_of(scenario, name)
    return profile.nvlink if isinstance(profile, DeviceProfile) else None
