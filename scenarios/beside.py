"""Checks what stands beside the scenarios of a file: claims name what exists, swept values are right ones."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from scenarios import expressions
from scenarios.loading import Study, variant_with
from scenarios.schema import Scenario
from scenarios.study import Sweep
from scenarios.sweeps.points import faults, swept_keys
from simulator.errors import InputError, InputErrors
from simulator.validation import did_you_mean, validate
from simulator.yaml_source import Node, Path, shown

MOST_POINTS = 100_000
"""Points of a sweep, variants and seeds apart."""
_LOOKED_AT = 256
"""Points that are validated one by one; of larger sweeps every value once."""


def beside(study: Study) -> Iterator[InputError]:
    """What is wrong with the claims and the sweep."""
    variants = [scenario.variant for scenario in study.scenarios]
    for index, claim in enumerate(study.beside.claims):
        yield from _claim(study, index, claim.expr, variants)
    sweep = study.beside.sweep
    if sweep is None:
        return
    yield from _variants(study, sweep)
    yield from _best(study, sweep)
    yield from faults(study, sweep)
    yield from _size(study, sweep)


def _variants(study: Study, sweep: Sweep) -> Iterator[InputError]:
    known = [scenario.variant for scenario in study.scenarios]
    for index, name in enumerate(sweep.variants or ()):
        if name not in known:
            yield _unknown(study, ("sweep", "variants", index), name, known, "one of the variants")


def _unknown(study: Study, path: Path, name: str, known: Any, what: str) -> InputError:
    expected = f"{what}: {', '.join(sorted(known))}"
    return study.document.error(path, expected=expected, found=repr(name), hint=did_you_mean(name, known))


def _claim(study: Study, index: int, expr: str, variants: list[str]) -> Iterator[InputError]:
    path: Path = ("claims", index, "expr")
    try:
        named = sorted(expressions.names(expr))
    except ValueError as error:
        yield study.document.error(path, expected=str(error).split(", expected ")[-1], found=shown(expr))
        return
    for variant, key, *_ in named:
        if variant not in variants:
            yield _unknown(study, path, variant, variants, "one of the variants")
        elif key not in expressions.SUMMARY_KEYS:
            yield _unknown(study, path, key, expressions.SUMMARY_KEYS, "a key of the summary")


def _best(study: Study, sweep: Sweep) -> Iterator[InputError]:
    """The best of a sweep is by one of its keys, within others."""
    best, swept = sweep.best, list(swept_keys(sweep))
    if best is None:
        return
    if best.by not in swept:
        yield _unknown(study, ("sweep", "best", "by"), best.by, swept, "a swept key")
    if best.metric.split(".")[0] not in expressions.SUMMARY_KEYS:
        known = expressions.SUMMARY_KEYS
        yield _unknown(study, ("sweep", "best", "metric"), best.metric, known, "a key of the summary")
    for index, key in enumerate(best.within):
        if key not in (*swept, "variant"):
            yield _unknown(study, ("sweep", "best", "within", index), key, (*swept, "variant"), "a swept key")


def swept(study: Study) -> Iterator[InputError]:
    """What is wrong with the points of the sweep: with all of a small one, else with every value once."""
    sweep = study.beside.sweep
    if sweep is None or any(faults(study, sweep)) or any(_size(study, sweep)) or any(_variants(study, sweep)):
        return  # which `beside` tells
    names = sweep.variants or [scenario.variant for scenario in study.scenarios]
    if len(names) * prod(len(values) for values in swept_keys(sweep).values()) <= _LOOKED_AT:
        from scenarios.sweeps.plan import wrong_points  # which needs this module

        yield from wrong_points(study, sweep)
    elif sweep.impossible == "error":
        points = [_overrides(study, places) for places in _looked_at(sweep)]
        found = [error for name in names for point in points for error in _tried(study, name, point)]
        yield from {str(error): error for error in found}.values()


def _size(study: Study, sweep: Sweep) -> Iterator[InputError]:
    """Lists of a zip are as long as one another, and the points not too many."""
    lengths = {len(values) for values in sweep.zip.values()}
    if len(lengths) > 1:
        found = f"lists of {', '.join(map(str, sorted(lengths)))} values"
        yield study.document.error(("sweep", "zip"), expected="lists of one length", found=found)
        return
    size = prod(len(values) for values in sweep.grid.values())
    size *= max(lengths, default=1) * max(len(sweep.cases), 1)
    if size > MOST_POINTS:
        expected = f"at most {MOST_POINTS} points"
        yield study.document.error(("sweep", "grid"), expected=expected, found=str(size), key=True)


def _looked_at(sweep: Sweep) -> Iterator[list[tuple[Path, int]]]:
    """Points with every value once, as (where the values stand, which of them)."""
    grid = [[(("sweep", "grid", key), i) for i in range(len(values))] for key, values in sweep.grid.items()]
    rows = max((len(values) for values in sweep.zip.values()), default=1)
    zipped = [[(("sweep", "zip", key), row) for key in sweep.zip] for row in range(rows)]
    for axis, values in enumerate(grid):
        for value in values:
            yield [*(other[0] for n, other in enumerate(grid) if n != axis), value, *zipped[0]]
    for row in zipped:
        yield [*(values[0] for values in grid), *row]


def _overrides(study: Study, places: list[tuple[Path, int]]) -> list[tuple[Path, Node]]:
    """Paths and values of a point, shorter paths first."""
    found = [(tuple(str(path[-1]).split(".")), study.document.find((*path, i))[0]) for path, i in places]
    return sorted(found, key=lambda pair: len(pair[0]))


def _tried(study: Study, variant: str, overrides: list[tuple[Path, Node]]) -> list[InputError]:
    """What is wrong with a variant under these overrides."""
    try:
        validate(Scenario, variant_with(study, variant, overrides), {"allow_code": study.allow_code})
    except InputErrors as error:
        return list(error.errors)
    except InputError as error:
        return [error]
    return []
