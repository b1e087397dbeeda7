"""Resolves a study: sees that what its scenarios name exists, fits and can be combined, before anything runs.

`load` reads the shape of a file; here the machines are built, the workers placed, every name looked up.
Errors point at the file as those of `load` do, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from calibration import operations
from scenarios.beside import beside, swept
from scenarios.build import gradient_seconds
from scenarios.later import LaterMethod
from scenarios.loading import Study
from scenarios.machines import (
    fabric_of,
    network_cost,
    others_workers,
    prices_of,
    profile_of,
    servers_of,
    workers_of,
)
from scenarios.planning import StepWorkload
from scenarios.prune import has_groups, has_trees, pruned, unused
from scenarios.schema import Collective, Other, Scenario, Training
from simulator.collectives.hierarchical import hosts_in_rows
from simulator.devices import DeviceProfile
from simulator.errors import InputError, InputErrors
from simulator.fabric import Fabric
from simulator.placement import Workers
from simulator.streams import Draws
from simulator.validation import did_you_mean
from simulator.workload import WorkloadSpec
from simulator.yaml_source import Node, Path, shown
from topologies.cost import PriceFactors
from topologies.links import Impossible
from topologies.prices import Prices


def resolve(study: Study) -> Study:
    """The study with its scenarios complete: all defaults, and no part that its variant does not use.

    Raises:
        InputErrors: everything that cannot be.
    """
    wrong: list[InputError] = []
    for scenario in study.scenarios:
        wrong += _Case(scenario, study.nodes[scenario.variant]).wrong()
    if study.beside.sweep is None:  # else `scenarios.sweeps.plan` looks at all that it makes of them
        wrong += unused((scenario, study.nodes[scenario.variant]) for scenario in study.scenarios)
    if wrong := [*(wrong or swept(study)), *beside(study)]:
        raise InputErrors(list({str(one): one for one in wrong}.values()))
    return replace(study, scenarios=tuple(_looked_at(pruned(scenario)) for scenario in study.scenarios))


def completed(scenario: Scenario, node: Node) -> Scenario:
    """One scenario complete, as `resolve` makes them; `node` is what it was read from.

    Raises:
        InputErrors: everything that cannot be.
    """
    if wrong := _Case(scenario, node).wrong():
        raise InputErrors(wrong)
    return _looked_at(pruned(scenario))


def _looked_at(scenario: Scenario) -> Scenario:
    """Whoever has a target looks for it: 200 times within `stop.time`, else after every ten gradients."""
    stop, evaluate = scenario.stop, scenario.evaluate
    if stop.target is None or evaluate.every is not None:
        return scenario
    every = stop.time / 200 if stop.time else 10 * gradient_seconds(scenario)
    return scenario.model_copy(update={"evaluate": evaluate.model_copy(update={"every": every})})


def unsupported(study: Study) -> list[InputError]:
    """The keys of a file that `run` cannot execute: they would be ignored, so they are refused by name."""
    hints = {"sweep": "`paceline sweep` runs it", "plan": "`paceline plan` is not part of this release"}
    found = [
        _refused(study.document, (key,), hint)
        for key, hint in hints.items()
        if study.document.get(key) is not None
    ]
    for scenario in study.scenarios:
        found += not_executed(scenario, study.nodes[scenario.variant])
    return list({str(one): one for one in found}.values())


def not_executed(scenario: Scenario, node: Node) -> Iterator[InputError]:
    """The keys of a scenario that `run` cannot execute."""
    if scenario.layout is not None:
        yield _refused(node, ("layout",), "steps of large models are not part of this release")
    if isinstance(scenario.training and scenario.training.strategy, LaterMethod):
        yield _refused(node, ("training", "strategy", "kind"), "not a method of this release")
    for index, other in enumerate(scenario.others):
        if isinstance(other.training.strategy, LaterMethod):
            path = ("others", index, "training", "strategy", "kind")
            yield _refused(node, path, "not a method of this release")


def _refused(node: Node, path: Path, hint: str) -> InputError:
    found = shown(node.find(path)[0].data) if path[-1] == "kind" else str(path[-1])
    return node.error(path, expected="keys that `run` executes", found=found, hint=hint, key=True)


@dataclass
class _Case:
    """One variant under examination."""

    scenario: Scenario
    node: Node

    def wrong(self) -> list[InputError]:
        """Everything that cannot be; where the machines cannot, nothing that asks for them is looked at."""
        found = [*_sections(self), *_names(self), *_goals(self)]
        if not self.machines:
            return [*found, *self.machine_errors]
        return [*found, *_workers(self)]

    def error(
        self, path: Path, expected: str, found: str = "", hint: str = "", *, key: bool = False
    ) -> InputError:
        return self.node.error(path, expected=expected, found=found, hint=hint, key=key)

    def at(self, path: Path, error: Exception) -> InputError:
        """An error of the engine's as one about the value at `path`."""
        if isinstance(error, InputError) and error.line is not None:
            return error
        expected = getattr(error, "expected", "") or str(error)
        path = (*path, *getattr(error, "at", ()))
        return self.error(path, expected, getattr(error, "found", ""), getattr(error, "hint", ""))

    def tried(self, path: Path, attempt: Callable[[], Any]) -> Iterator[InputError]:
        """What `attempt` complains of, as an error about `path`."""
        try:
            attempt()
        except (InputError, ValueError) as error:
            yield self.at(path, error)

    @cached_property
    def machine_errors(self) -> list[InputError]:
        return []

    @cached_property
    def machines(self) -> tuple[Fabric, Workers] | None:
        """The network and the workers on it, None (and errors) if they cannot be."""
        scenario = self.scenario
        try:
            fabric = fabric_of(scenario)
        except (InputError, ValueError) as error:
            self.machine_errors.append(self.at(_place_of(error), error))
            return None
        try:
            return fabric, workers_of(scenario, fabric)
        except (InputError, ValueError) as error:
            placement = ("cluster", "placement")
            path = (*placement, "workers") if scenario.cluster.placement.workers else ("cluster",)
            self.machine_errors.append(
                self.at(placement if hasattr(error, "at") and error.at else path, error)
            )
            return None


def _place_of(error: Exception) -> Path:
    """The part of the cluster that an error in building it is about."""
    if isinstance(error, InputError):
        return ("cluster", error.field) if error.field == "prices" else ("cluster", "topology")
    beside = getattr(error, "at", ())[:1] in (("budget_usd",), ("prices",))
    return ("cluster",) if beside else ("cluster", "topology")


def _sections(c: _Case) -> Iterator[InputError]:
    """What must stand together, and what cannot."""
    s = c.scenario
    step = isinstance(s.workload, StepWorkload)
    if s.training is None and s.layout is None:
        yield c.error(
            ("training",),
            "the key 'training'",
            "no such key",
            "training: {strategy: {kind: sync_sgd}}",
            key=True,
        )
    if s.workload is None and s.problem is None:
        hint = "workload: {model: resnet18, batch: 32}"
        yield c.error(("workload",), "the key 'workload' or 'problem'", "neither", hint, key=True)
    if step and s.layout is None:
        yield c.error(
            ("workload",), "`batch`, or a `layout` beside it", "keys of a large model's step", key=True
        )
    if s.layout is not None and not step:
        yield c.error(
            ("layout",), "a workload with seq, micro_batch and global_batch", "layout without one", key=True
        )
    if not isinstance(s.cluster.placement.order, str) and s.layout is None:
        yield c.error(
            ("cluster", "placement", "order"),
            "an order by name",
            "the axes of a layout",
            "there is no `layout`",
        )


def _goals(c: _Case) -> Iterator[InputError]:
    """Targets and limits that something can meet."""
    stop, problem = c.scenario.stop, c.scenario.problem
    if problem is None:
        hint = "timing only, without a `problem`, nothing is learned"
        if stop.target is not None:
            yield c.error(("stop", "target"), "a problem", "a target without one", hint, key=True)
        if stop.epochs is not None and c.node.find(("stop", "epochs"))[1] == ("stop", "epochs"):
            yield c.error(("stop", "epochs"), "a problem", "epochs without one", hint, key=True)
        if c.scenario.training is not None and c.scenario.training.strategy.needs_math:
            yield c.error(("training", "strategy"), "a problem", "a method that branches on numbers", hint)
    elif stop.target is not None and stop.target.accuracy is not None and "accuracy" not in problem.metrics:
        expected = f"one of {', '.join(problem.metrics)}"
        yield c.error(
            ("stop", "target", "accuracy"), expected, "accuracy", f"{problem.name} has none", key=True
        )


def _names(c: _Case) -> Iterator[InputError]:
    """Profiles, prices, and the model costed."""
    s = c.scenario
    if s.cluster.budget_usd is None and s.cluster.prices is not None:
        yield from c.tried(("cluster", "prices"), partial(prices_of, s))
    elif s.cluster.budget_usd is None and s.cluster.price_factors != PriceFactors():
        hint = "cluster.prices: ethernet_2026"
        yield c.error(("cluster", "price_factors"), "prices, or a budget_usd", "neither", hint, key=True)
    for path, name in _profiles(c.node):
        yield from c.tried(path, partial(profile_of, s, name))
    if s.workload is not None and not isinstance(s.workload, StepWorkload):
        model = s.workload.model
        yield from c.tried(("workload", "model"), lambda: operations.load(model))


def _profiles(node: Node, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every device profile named in the cluster."""
    below = node.find(path)[0].content
    if isinstance(below, dict):
        for key, value in below.items():
            if key == "profile" and path[-1:] == ("devices",) and isinstance(value.content, str):
                yield (*path, key), value.content
            elif path or key == "cluster":
                yield from _profiles(node, (*path, key))
    elif isinstance(below, list):
        for index in range(len(below)):
            yield from _profiles(node, (*path, index))


def _workers(c: _Case) -> Iterator[InputError]:
    """What is asked of the workers and of their devices."""
    assert c.machines is not None
    fabric, workers = c.machines
    scenario, draws = c.scenario, Draws(c.scenario.seed)
    for index, entry in enumerate(scenario.stragglers):
        select = partial(workers.select, entry.where, draws, "check")
        yield from c.tried(("stragglers", index, "where"), select)
    if scenario.training is not None:
        if scenario.training.strategy.has_server or scenario.cluster.placement.server != "own":
            yield from c.tried(
                ("cluster", "placement", "server"), lambda: scenario.cluster.placement.server_node(fabric)
            )
        yield from _method(c, scenario.training, workers)
        yield from _hierarchy(c, scenario.training, workers)
    if scenario.workload is not None:
        yield from _types(c, scenario.workload, workers)
    if isinstance(scenario.cluster.prices, Prices):
        yield from c.tried(("cluster",), partial(network_cost, scenario))
    yield from _around(c, fabric)
    yield from _others(c, fabric)


def _hierarchy(c: _Case, training: Training, workers: Workers) -> Iterator[InputError]:
    """A hierarchical all-reduce finds equally many workers on every host."""
    own = getattr(training.strategy, "collective", None)
    path: Path = ("training", "strategy", "collective") if own else ("network", "collective", "all_reduce")
    if (own or c.scenario.network.collective.all_reduce) == "hierarchical":
        yield from c.tried(path, partial(hosts_in_rows, workers.host))


def _types(
    c: _Case, workload: WorkloadSpec | StepWorkload, workers: Workers, base: Path = ()
) -> Iterator[InputError]:
    """What is computed in is among what the devices compute in."""
    for name in sorted(set(workers.profile)):
        profile = _profile(c.scenario, name)
        if isinstance(profile, DeviceProfile) and workload.dtype not in profile.peak:
            expected = f"one of the types of device {profile.name}: {', '.join(profile.peak)}"
            yield c.error((*base, "workload", "dtype"), expected, workload.dtype)


def _around(c: _Case, fabric: Fabric) -> Iterator[InputError]:
    """Links that change and hosts that send are there; what shares nothing has no background."""
    network = c.scenario.network
    for index, change in enumerate(network.schedule):
        path: Path = ("network", "schedule", index, "where", "link")
        yield from c.tried(path, partial(change.where.select, fabric))
    for index, flows in enumerate(network.background):
        try:
            flows.ends(fabric)
        except InputError as error:
            yield c.at(("network", "background", index, error.field), error)
    given = {("network", "background"): network.background, ("others",): c.scenario.others}
    for path, entries in given.items():
        if entries and network.fidelity == "closed_form":
            expected = "the fidelity flows or bundles"
            yield c.error(path, expected, f"{path[-1]} under closed_form, which shares no link", key=True)


def _others(c: _Case, fabric: Fabric) -> Iterator[InputError]:
    """What the other jobs ask of the machines."""
    others = c.scenario.others
    names = [other.name for other in others]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield c.error(("others", index, "name"), "a name for each job", f"{name!r} again")
    try:
        placed = others_workers(c.scenario, fabric)
    except Impossible as error:
        yield c.at((), error)
        return
    for index, (other, workers) in enumerate(zip(others, placed, strict=True)):
        base: Path = ("others", index)
        yield from c.tried((*base, "workload", "model"), partial(operations.load, other.workload.model))
        yield from _types(c, other.workload, workers, base)
        yield from _method(c, other.training, workers, base)
        yield from _for_nothing(c, other, base)
        for number, entry in enumerate(other.stragglers):
            select = partial(workers.select, entry.where, Draws(c.scenario.seed), "check")
            yield from c.tried((*base, "stragglers", number, "where"), select)
        if other.training.strategy.has_server:
            yield from c.tried((*base, "placement", "server"), partial(servers_of, c.scenario, fabric))


def _for_nothing(c: _Case, other: Other, base: Path) -> Iterator[InputError]:
    """Keys of another job that it has no use for."""
    strategy = other.training.strategy
    if strategy.needs_math:
        hint = "other jobs are timed only"
        yield c.error((*base, "training", "strategy"), "a method that needs no numbers", hint=hint)
    if other.training.gossip is not None and not strategy.needs_gossip:
        yield c.error((*base, "training", "gossip"), "a method that gossips", key=True)
    trees = has_trees(other.collective, strategy)
    if other.collective.hosts_per_group != Collective().hosts_per_group and not has_groups(other.collective):
        path = (*base, "collective", "hosts_per_group")
        yield c.error(path, "an all_reduce by hierarchical_3", other.collective.all_reduce, key=True)
    if other.collective.tree_chunks != Collective().tree_chunks and not trees:
        path = (*base, "collective", "tree_chunks")
        yield c.error(path, "an all_reduce by tree or double_tree", other.collective.all_reduce, key=True)


def _profile(scenario: Scenario, name: str) -> Any:
    try:
        return profile_of(scenario, name)
    except InputError:
        return None  # said already


def _method(c: _Case, training: Training, workers: Workers, base: Path = ()) -> Iterator[InputError]:
    """What a training method asks of the cluster."""
    strategy, n = training.strategy, len(workers)
    place: Path = (*base, "training", "strategy")
    classes = getattr(strategy, "h_by_class", None) or {}
    for name in classes:
        if name not in workers.kind:
            known = sorted(set(workers.kind))
            expected = f"a class of device: {', '.join(known)}"
            yield c.error(
                (*place, "h_by_class", name), expected, repr(name), did_you_mean(name, known), key=True
            )
    backup = getattr(strategy, "backup", 0)
    if isinstance(backup, int) and backup >= n:
        yield c.error((*place, "backup"), f"fewer than the {n} workers", str(backup))
    yield from _compression(c, training, n, (*base, "training", "compression"))
    graph = training.gossip
    if strategy.needs_gossip and graph is not None:
        yield from c.tried((*base, "training", "gossip"), lambda: graph.mixing(1, n, Draws(c.scenario.seed)))
    elif strategy.needs_gossip:
        hint = "training.gossip: {graph: ring}"
        yield c.error(
            (*base, "training", "gossip"), "a graph of who exchanges with whom", "none", hint, key=True
        )


def _compression(c: _Case, training: Training, n: int, path: Path) -> Iterator[InputError]:
    """Whether what the method sends can be compressed so."""
    how, strategy, graph = training.compression, training.strategy, training.gossip
    if how is None:
        return
    if strategy.sends == "whole":
        yield c.error(path, "a method that can compress what it sends", "one that cannot", key=True)
    elif strategy.sends == "models" and not how.keeps_models:
        hint = "its models go to peers that know nothing of them"
        yield c.error((*path, "kind"), "a quantiser: qsgd", how.kind, hint)
    elif strategy.sends == "changes" and strategy.needs_gossip and graph is not None and graph.period(n) != 1:
        hint = "neighbours keep copies of each other's models"
        yield c.error(path, "a gossip graph that stays the same", graph.graph, hint, key=True)
