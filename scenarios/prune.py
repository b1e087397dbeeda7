"""Parts of a scenario that only some variants use: out of the others, refused where no variant uses them.

Nothing that is given may be ignored. A file may give a gossip graph for all its variants though but one
gossips; a variant that does not is resolved without it, so that its hash does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scenarios.schema import Collective, MathsSpec, Scenario
from simulator.errors import InputError
from simulator.yaml_source import Node, Path


def _gossips(s: Scenario) -> bool:
    return s.training is not None and s.training.strategy.needs_gossip


def _mixes(s: Scenario) -> bool:
    return s.training is not None and s.training.strategy.needs_gossip and s.training.strategy.mixes


def _has_trees(s: Scenario) -> bool:
    return has_trees(s.network.collective, getattr(s.training, "strategy", None))


def has_trees(collective: Collective, strategy: Any) -> bool:
    """Whether an all-reduce may go by trees."""
    named = {collective.all_reduce, getattr(strategy, "collective", None)}
    return bool(named & {"tree", "double_tree", "nccl_auto"})


def has_groups(collective: Collective) -> bool:
    """Whether an all-reduce has groups of hosts."""
    return collective.all_reduce == "hierarchical_3"


def profiles_used(value: Any) -> set[str]:
    """Names of the device profiles that the hosts of a cluster have; `value`: its plain data."""
    if isinstance(value, dict):
        devices = value.get("devices")
        own = (
            {devices["profile"]}
            if isinstance(devices, dict) and isinstance(devices.get("profile"), str)
            else set()
        )
        return own.union(*(profiles_used(below) for below in value.values()))
    return (
        set().union(*(profiles_used(below) for below in value)) if isinstance(value, list | tuple) else set()
    )


def _default(s: Scenario, path: Path) -> bool:
    """Whether the value there is the default, as a resolved file writes it."""
    if path == ("training", "gossip"):
        return s.training is None or s.training.gossip is None
    if path[:-1] == ("training", "gossip"):
        gossip, key = s.training.gossip if s.training else None, str(path[-1])
        return gossip is None or getattr(gossip, key) == _UNMIXED[key]
    if path == ("maths",):
        return s.maths == MathsSpec()
    return bool(getattr(s.network.collective, str(path[-1])) == getattr(Collective(), str(path[-1])))


_UNMIXED: dict[str, Any] = {"lazy": 0.0, "weights": "metropolis"}
"""Keys of a gossip graph that say how much of a neighbour's value is mixed in, and their defaults."""

_USED: dict[Path, tuple[Callable[[Scenario], bool], str]] = {
    ("training", "gossip"): (_gossips, "a method that gossips, such as dpsgd"),
    ("training", "gossip", "lazy"): (_mixes, "a method that mixes by weights, such as dpsgd"),
    ("training", "gossip", "weights"): (_mixes, "a method that mixes by weights, such as dpsgd"),
    ("maths",): (lambda s: s.problem is not None, "a problem"),
    ("network", "collective", "tree_chunks"): (_has_trees, "an all_reduce by tree or double_tree"),
    ("network", "collective", "hosts_per_group"): (
        lambda s: has_groups(s.network.collective),
        "an all_reduce by hierarchical_3",
    ),
}


def unused(given: Iterable[tuple[Scenario, Node]]) -> Iterator[InputError]:
    """Values that no scenario uses, of those that some give; each scenario with what it was read from."""
    first: dict[Path, Node] = {}
    needed: set[Path] = set()
    wanted: set[str] = set()
    for s, node in given:
        needed.update(path for path, (used, _) in _USED.items() if used(s))
        wanted |= profiles_used(s.cluster.model_dump())
        for path in _given(s, node):
            first.setdefault(path, node)
    for path, node in first.items():
        if path[0] == "profiles":
            found, expected, missed = repr(path[1]), "a profile that some devices have", path[1] not in wanted
        else:
            found, expected = f"{path[-1]}, which nothing here uses", _USED[path][1]
            missed = path not in needed
        if missed:
            yield node.error(path, expected=expected, found=found, key=True)


def _given(s: Scenario, node: Node) -> Iterator[Path]:
    """What a scenario gives of what may be of no use."""
    yield from (path for path in _USED if node.find(path)[1] == path and not _default(s, path))
    yield from (("profiles", name) for name in s.profiles)


def pruned(s: Scenario) -> Scenario:
    """The scenario without the parts that it does not use."""
    changes: dict[str, Any] = {}
    if s.training is not None and not _gossips(s):
        changes["training"] = s.training.model_copy(update={"gossip": None})
    elif s.training is not None and s.training.gossip is not None and not _mixes(s):
        unmixed = s.training.gossip.model_copy(update=_UNMIXED)
        changes["training"] = s.training.model_copy(update={"gossip": unmixed})
    if s.problem is None:
        changes["maths"] = MathsSpec()
    used = {"tree_chunks": _has_trees(s), "hosts_per_group": has_groups(s.network.collective)}
    plain = {key: getattr(Collective(), key) for key, needed in used.items() if not needed}
    collective = s.network.collective.model_copy(update=plain)
    changes["network"] = s.network.model_copy(update={"collective": collective})
    wanted = profiles_used(s.cluster.model_dump())
    changes["profiles"] = {name: profile for name, profile in s.profiles.items() if name in wanted}
    return s.model_copy(update=changes)
