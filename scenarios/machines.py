"""The machines of a scenario: its device profiles, its network, where its workers sit."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from calibration import profiles
from simulator.devices import ConstantDevice, DeviceProfile, Nvlink
from simulator.fabric import Fabric
from simulator.placement import Workers
from topologies import prices
from topologies.cost import Cost, cost_of, factor_at_cost, widened
from topologies.links import Impossible
from topologies.prices import Prices

if TYPE_CHECKING:
    from scenarios.schema import Scenario, Training
    from topologies import Placement, Topology

Device = DeviceProfile | ConstantDevice


def profile_of(scenario: Scenario, name: str) -> Device:
    """A device profile by name: the scenario's own, or a shipped one.

    Raises:
        InputError: no such profile.
    """
    own = scenario.profiles.get(name)
    return own if own is not None else profiles.load(name)


def fabric_of(scenario: Scenario) -> Fabric:
    """The network, with a host of its own for the server of each job whose method has one.

    Raises:
        Impossible: the topology cannot be.
    """
    extra = sum(own_server(training, placement) for training, placement in _jobs(scenario))
    return built(scenario, extra)


def built(scenario: Scenario, extra: int = 0) -> Fabric:
    """The network with `extra` hosts for servers, within the budget if there is one.

    Raises:
        Impossible: the topology cannot be, or not at that cost.
    """
    fabric, cluster = _built(scenario, extra), scenario.cluster
    if cluster.budget_usd is None:
        return fabric
    bare = fabric if not extra else _built(scenario, 0)  # a server's own host counts in no budget
    factor = factor_at_cost(
        cluster.topology, bare, prices_of(scenario), cluster.budget_usd, cluster.price_factors
    )
    return widened(fabric, factor)


def _built(scenario: Scenario, extra: int) -> Fabric:
    own = tuple((name, nvlink(profile)) for name, profile in sorted(scenario.profiles.items()))
    return _fabric(scenario.cluster.topology, extra, scenario.seed, own)


def prices_of(scenario: Scenario) -> Prices:
    """The price list of a cluster, by default the shipped one.

    Raises:
        InputError: no such list.
    """
    named = scenario.cluster.prices
    return named if isinstance(named, Prices) else prices.load(named or prices.DEFAULT)


def network_cost(scenario: Scenario) -> Cost:
    """What the network costs, without a server's own host; within the budget, if there is one."""
    cluster = scenario.cluster
    return cost_of(cluster.topology, built(scenario), prices_of(scenario)).times(cluster.price_factors)


@lru_cache(maxsize=2)  # variants mostly share a network, and large ones take seconds to build
def _fabric(topology: Topology, extra: int, seed: int, own: tuple[tuple[str, Nvlink | None], ...]) -> Fabric:
    known = dict(own)

    def nvlink_of(name: str) -> Nvlink | None:
        return known[name] if name in known else nvlink(profiles.load(name))

    return topology.build(nvlink_of, extra_hosts=extra, seed=seed)


def _jobs(scenario: Scenario) -> list[tuple[Training | None, Placement]]:
    """Training and placement of each job, the scenario's own first."""
    own = (scenario.training, scenario.cluster.placement)
    return [own, *((other.training, other.placement) for other in scenario.others)]


def own_server(training: Training | None, placement: Placement) -> bool:
    """Whether a job has a server on a host of its own."""
    return training is not None and training.strategy.has_server and bool(placement.extra_hosts)


def servers_of(scenario: Scenario, fabric: Fabric) -> list[int | None]:
    """Node of the server of each job, the scenario's own first; None for a method without one.

    Raises:
        Impossible: no such host.
    """
    found: list[int | None] = []
    own = 0
    for training, placement in _jobs(scenario):
        has_server = training is not None and training.strategy.has_server
        found.append(placement.server_node(fabric, own) if has_server else None)
        own += own_server(training, placement)
    return found


def others_workers(scenario: Scenario, fabric: Fabric) -> list[Workers]:
    """The workers of the other jobs, each on devices that no job before it has.

    Raises:
        Impossible: they do not fit; `at` is the path in the scenario.
    """
    taken = scenario.cluster.placement.place(fabric, scenario.seed)
    found = []
    for index, other in enumerate(scenario.others):
        try:
            places = other.placement.place(fabric, scenario.seed, taken)
        except Impossible as error:
            at = ("others", index, "placement", *(error.at or ("workers",)))
            hint = error.hint if error.at else "other jobs get the devices that no job before has"
            raise Impossible(error.found, error.expected, hint, at=at) from None
        taken = np.concatenate([taken, places])
        found.append(Workers.of(fabric, places))
    return found


def workers_of(scenario: Scenario, fabric: Fabric) -> Workers:
    """The workers on the devices of the fabric.

    Raises:
        Impossible: they do not fit.
    """
    return Workers.of(fabric, scenario.cluster.placement.place(fabric, scenario.seed))


def nvlink(profile: Device) -> Nvlink | None:
    """The NVLink of a device, if it has one."""
    return profile.nvlink if isinstance(profile, DeviceProfile) else None
