"""The machines of a scenario: its device profiles, its network, where its workers sit."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from calibration import profiles
from simulator.devices import ConstantDevice, DeviceProfile, Nvlink
from simulator.fabric import Fabric
from simulator.placement import Workers

if TYPE_CHECKING:
    from scenarios.schema import Scenario
    from topologies import Topology

Device = DeviceProfile | ConstantDevice


def profile_of(scenario: Scenario, name: str) -> Device:
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
    own = tuple((name, nvlink(profile)) for name, profile in sorted(scenario.profiles.items()))
    return _fabric(scenario.cluster.topology, extra, scenario.seed, own)


@lru_cache(maxsize=2)  # variants mostly share a network, and large ones take seconds to build
def _fabric(topology: Topology, extra: int, seed: int, own: tuple[tuple[str, Nvlink | None], ...]) -> Fabric:
    known = dict(own)

    def nvlink_of(name: str) -> Nvlink | None:
        return known[name] if name in known else nvlink(profiles.load(name))

    return topology.build(nvlink_of, extra_hosts=extra, seed=seed)


def workers_of(scenario: Scenario, fabric: Fabric) -> Workers:
    """The workers on the devices of the fabric.

    Raises:
        Impossible: they do not fit.
    """
    return Workers.of(fabric, scenario.cluster.placement.place(fabric, scenario.seed))


def nvlink(profile: Device) -> Nvlink | None:
    """The NVLink of a device, if it has one."""
    return profile.nvlink if isinstance(profile, DeviceProfile) else None
