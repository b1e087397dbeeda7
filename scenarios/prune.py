"""Parts of a scenario that only some variants use: out of the others, refused where no variant uses them.

Nothing that is given may be ignored. A file may give a gossip graph for all its variants though but one
gossips; a variant that does not is resolved without it, so that its hash does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from scenarios.schema import Collective, MathsSpec, Scenario
from simulator.errors import InputError
from simulator.yaml_source import Node, Path


def _gossips(s: Scenario) -> bool:
    return s.training is not None and s.training.strategy.needs_gossip


def _has_trees(s: Scenario) -> bool:
    strategy = getattr(s.training, "strategy", None)
    return "tree" in f"{s.network.collective.all_reduce} {getattr(strategy, 'collective', None)}"


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
    if path == ("maths",):
        return s.maths == MathsSpec()
    return s.network.collective.tree_chunks == Collective().tree_chunks


_USED: dict[Path, tuple[Callable[[Scenario], bool], str]] = {
    ("training", "gossip"): (_gossips, "a method that gossips, such as dpsgd"),
    ("maths",): (lambda s: s.problem is not None, "a problem"),
    ("network", "collective", "tree_chunks"): (_has_trees, "an all_reduce by tree or double_tree"),
}


def unused(scenarios: Sequence[Scenario], nodes: Mapping[str, Node]) -> Iterator[InputError]:
    """Values given that no variant uses."""
    for path, (used, needed) in _USED.items():
        given = [s for s in scenarios if nodes[s.variant].find(path)[1] == path and not _default(s, path)]
        if given and not any(used(s) for s in scenarios):
            node = nodes[given[0].variant]
            yield node.error(path, expected=needed, found=f"{path[-1]}, which nothing here uses", key=True)
    wanted = set().union(*(profiles_used(s.cluster.model_dump()) for s in scenarios))
    for s in scenarios:
        for name in s.profiles:
            if name not in wanted:
                path = ("profiles", name)
                yield nodes[s.variant].error(
                    path, expected="a profile that some devices have", found=repr(name), key=True
                )


def pruned(s: Scenario) -> Scenario:
    """The scenario without the parts that it does not use."""
    changes: dict[str, Any] = {}
    if s.training is not None and not _gossips(s):
        changes["training"] = s.training.model_copy(update={"gossip": None})
    if s.problem is None:
        changes["maths"] = MathsSpec()
    if not _has_trees(s):
        collective = s.network.collective.model_copy(update={"tree_chunks": Collective().tree_chunks})
        changes["network"] = s.network.model_copy(update={"collective": collective})
    used = profiles_used(s.cluster.model_dump())
    changes["profiles"] = {name: profile for name, profile in s.profiles.items() if name in used}
    return s.model_copy(update=changes)
