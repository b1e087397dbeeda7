"""The runs of a sweep, each resolved and checked before any of them begins."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from scenarios.check import completed, not_executed, resolve
from scenarios.loading import load, variant_with
from scenarios.manifest import content_hash
from scenarios.prune import unused
from scenarios.resolved import document
from scenarios.run import input_hashes, own_code
from scenarios.schema import Scenario
from scenarios.store import file_name
from scenarios.study import Sweep
from scenarios.sweeps.points import Point, as_text, folder, label, points, seeds_of, swept_keys
from simulator.errors import InputError, InputErrors
from simulator.validation import validate
from simulator.yaml_source import Mark, Node

if TYPE_CHECKING:
    from scenarios.loading import Study

#: More runs than this are begun only when the user says so.
MOST_RUNS = 10_000

#: Errors told of one sweep.
MOST_ERRORS = 20

Tell = Callable[[int, int], None]
"""Is told how many points of how many have been checked."""


@dataclass(frozen=True)
class Entry:
    """One run of a sweep.

    Attributes:
        number: its place in the order of all runs, and in the table.
        place: its directory below that of the sweep, with `/`.
        variant, seed: of the run.
        values: swept key -> value.
        resolved: the resolved scenario as JSON, with another seed; None if it cannot be.
        error: why it cannot be.
    """

    number: int
    place: str
    variant: str
    seed: int
    values: Mapping[str, Any]
    resolved: str | None
    error: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The resolved scenario of the run."""
        whole: dict[str, Any] = json.loads(self.resolved or "{}")
        whole["seed"] = self.seed
        return whole


@dataclass(frozen=True)
class Plan:
    """What a sweep consists of.

    Attributes:
        study: the file.
        sweep: its key `sweep`.
        entries: the runs, by variant, then point, then seed.
    """

    study: Study
    sweep: Sweep
    entries: Sequence[Entry] = field(repr=False)

    @property
    def keys(self) -> dict[str, list[Any]]:
        """The keys swept, each with its values."""
        return swept_keys(self.sweep)

    @property
    def digest(self) -> str:
        """Hash of all that is run."""
        seen = hashlib.sha256()
        for entry in self.entries:
            seen.update(f"{entry.place}\n{entry.resolved}\n".encode())
        return seen.hexdigest()


def ready(
    file: str | Path, sets: Sequence[str] = (), *, seed: int | None = None, allow_code: bool = False
) -> Study:
    """Load a file with a sweep and see that it can be run; `seed` instead of the sweep's seeds.

    Raises:
        InputErrors: everything that is wrong.
    """
    study = resolve(load(file, sets, seed=seed, allow_code=allow_code))
    sweep = study.beside.sweep
    if sweep is None or seed is None:
        return study
    beside = study.beside.model_copy(update={"sweep": sweep.model_copy(update={"seeds": None})})
    return replace(study, beside=beside)


def planned(study: Study, *, most: int = MOST_RUNS, tell: Tell = lambda done, total: None) -> Plan:
    """Resolve and check every run of a study's sweep; nothing runs yet.

    Args:
        study: a file with the key `sweep`, checked by `scenarios.check.resolve`.
        most: runs that are allowed.
        tell: is told how it goes.

    Raises:
        InputErrors: no sweep, more runs than `most`, or points that cannot be run.
    """
    sweep = study.beside.sweep
    if sweep is None:
        hint = "or --set sweep.grid.KEY=[VALUE, ...]"
        raise study.document.error((), expected="the key 'sweep'", found="no such key", hint=hint)
    if lost := list(_lost_sets(study, sweep)):
        raise InputErrors(lost)
    variants = sweep.variants or tuple(scenario.variant for scenario in study.scenarios)
    all_points, seeds = list(points(study, sweep)), seeds_of(study, sweep)
    total = len(variants) * len(all_points) * len(seeds)
    if total > most:
        found = f"{len(variants)} variants x {len(all_points)} points x {len(seeds)} seeds = {total} runs"
        hint = f"--most {total} allows them, --dry-run lists them"
        raise study.document.error(
            ("sweep",), expected=f"at most {most} runs", found=found, hint=hint, key=True
        )
    resolved = _resolved(study, sweep, variants, all_points, tell)
    return Plan(study, sweep, list(_entries(resolved, seeds)))


def wrong_points(study: Study, sweep: Sweep) -> tuple[InputError, ...]:
    """What is wrong with the points of a sweep."""
    variants = sweep.variants or tuple(scenario.variant for scenario in study.scenarios)
    try:
        _resolved(study, sweep, variants, list(points(study, sweep)), lambda done, total: None, to_run=False)
    except InputErrors as errors:
        return errors.errors
    return ()


def _lost_sets(study: Study, sweep: Sweep) -> Iterator[InputError]:
    """Values of the command line that the sweep would replace."""
    for key in {*swept_keys(sweep), *(key for body in sweep.cases.values() for key in body)}:
        path = tuple(key.split("."))
        found = [node.find(path) for node in study.nodes.values()]
        marks = {mark for node, reached in found if reached == path for mark in _marks(node)}
        for mark in marks:
            given = re.sub(
                r"^variants\.[^.]*\.", "", (mark.file or "").removeprefix("--set ").split("=")[0].strip()
            )
            if mark.line is None and f"{given}.".startswith(f"{key}."):
                yield mark.error(
                    "a key that the sweep does not set", given, given, "set the sweep's own list"
                )


def _marks(node: Node) -> Iterator[Mark]:
    """Where a value and all within it stand."""
    yield node.at
    below = node.content.values() if isinstance(node.content, dict) else node.content
    if isinstance(node.content, dict | list):
        for one in below:
            yield from _marks(one)


@dataclass(frozen=True)
class _Tried:
    """A variant at a point: the resolved scenario as JSON, or what is wrong with it."""

    variant: str
    point: Point
    resolved: str | None = None
    wrong: tuple[InputError, ...] = ()


def _resolved(
    study: Study,
    sweep: Sweep,
    variants: Sequence[str],
    all_points: Sequence[Point],
    tell: Tell,
    *,
    to_run: bool = True,
) -> list[_Tried]:
    total = len(variants) * len(all_points)
    found: list[_Tried] = []

    def right() -> Iterator[tuple[Scenario, Node]]:
        for variant in variants:
            for point in all_points:
                node = variant_with(study, variant, point.overrides)
                tried, scenario = _tried(study, variant, point, node, to_run)
                found.append(tried)
                tell(len(found), total)
                if scenario is not None:
                    yield scenario, node

    useless = list(unused(right()))
    wrong = _never_right(found) if sweep.impossible == "skip" else found
    if errors := [*_told(wrong, found), *useless] or list(_without_effect(study, sweep, found)):
        raise InputErrors(errors[:MOST_ERRORS])
    return found


def _never_right(found: Sequence[_Tried]) -> list[_Tried]:
    """What is wrong and holds a value that is right nowhere; all of it if nothing is right."""
    right = {pair for tried in found if tried.resolved for pair in _pairs(tried.point)}
    return [tried for tried in found if not right or not right.issuperset(_pairs(tried.point))]


def _pairs(point: Point) -> set[tuple[str, str]]:
    return {(key, as_text(value)) for key, value in point.values.items()}


def _tried(
    study: Study, variant: str, point: Point, node: Node, to_run: bool
) -> tuple[_Tried, Scenario | None]:
    """A point resolved, or what is wrong with it; and the scenario with all that is given."""
    try:
        scenario = validate(Scenario, node, {"allow_code": study.allow_code})
        scenario = scenario.model_copy(update={"name": study.name, "seed": 0})
        text = json.dumps(document(completed(scenario, node)), separators=(",", ":"))
        if to_run and (refused := list(not_executed(scenario, node))):
            raise InputErrors(refused)
        return _Tried(variant, point, text), scenario
    except InputErrors as errors:
        return _Tried(variant, point, wrong=errors.errors), None
    except InputError as error:
        return _Tried(variant, point, wrong=(error,)), None


def _told(wrong: Sequence[_Tried], found: Sequence[_Tried]) -> list[InputError]:
    """What is wrong, each thing once; with a point in words where it is not due to one value alone."""
    where: dict[str, tuple[InputError, list[Point]]] = {}
    for tried in wrong:
        for error in tried.wrong:
            where.setdefault(str(error), (error, []))[1].append(tried.point)
    return [_in_words(error, points, found) for error, points in where.values()]


def _in_words(error: InputError, failing: Sequence[Point], found: Sequence[_Tried]) -> InputError:
    at = (error.line, error.column)
    alike = [one for one in found if any(at == (n.at.line, n.at.column) for _, n in one.point.overrides)]
    if not failing[0].values or (alike and len(alike) == len(failing)):
        return error
    more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
    hint = "; ".join(part for part in (error.hint, f"with {label(failing[0].values)}{more}") if part)
    return InputError(error.expected, error.found, error.field, hint, error.file, *at)


def _without_effect(study: Study, sweep: Sweep, found: Sequence[_Tried]) -> Iterator[InputError]:
    """Swept keys whose values all make the same scenario: whoever swept them expects something else."""
    for key, values in sweep.grid.items():
        if len(values) > 1 and not _matters(key, found):
            text = f"{key}, of no effect"
            expected, path = "a key that something here uses", ("sweep", "grid", key)
            yield study.document.error(path, expected=expected, found=text, key=True)


def _matters(key: str, found: Sequence[_Tried]) -> bool:
    """Whether two points that differ in this key alone make different scenarios."""
    first: dict[tuple[str, ...], str] = {}
    for tried in found:
        if tried.resolved is not None:
            values = tried.point.values.items()
            rest = (tried.variant, *(as_text(value) for other, value in values if other != key))
            if first.setdefault(rest, tried.resolved) != tried.resolved:
                return True
    return False


def _entries(found: Sequence[_Tried], seeds: Sequence[int]) -> Iterator[Entry]:
    number = 0
    for tried in found:
        values = tried.point.values
        error = "; ".join(map(str, tried.wrong)) or None
        parts = [file_name(tried.variant), *([file_name(folder(values))] if values else [])]
        for seed in seeds:
            place = str(PurePosixPath(*parts, f"seed-{seed}"))
            yield Entry(number, place, tried.variant, seed, values, tried.resolved, error)
            number += 1


def inputs_of(resolved: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of what a scenario reads beside itself: data files, and modules of the user's own.

    Of these only the module named is looked at, not what it imports.
    """
    found = input_hashes(resolved)
    if own_code(resolved):
        for name in _modules(resolved):
            module = sys.modules.get(name)
            file = inspect.getsourcefile(module) if module is not None else None
            found[name] = content_hash(Path(file).read_bytes()) if file else "unknown"
    return found


def _modules(value: Any) -> Iterator[str]:
    below = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if isinstance(kind, str) and ":" in kind:
        yield kind.partition(":")[0]
    for one in below:
        yield from _modules(one)


def by_point(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The entries of each variant and point: its seeds."""
    for _, group in groupby(entries, key=lambda entry: (entry.variant, label(entry.values))):
        yield list(group)
