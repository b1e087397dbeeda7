"""Checks what stands beside the scenarios of a file: claims name what exists, swept values are right ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from scenarios import expressions
from scenarios.loading import Study, variant_with
from scenarios.schema import Scenario
from scenarios.study import Sweep
from scenarios.sweeps.points import faults
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
    for index, name in enumerate(sweep.variants or ()):
        if name not in variants:
            yield _unknown(study, ("sweep", "variants", index), name, variants, "one of the variants")
    yield from _best(study, sweep)
    wrong = list(faults(study, sweep))
    yield from wrong
    if not wrong:
        yield from _points(study, sweep)


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
    best, swept = sweep.best, (*sweep.grid, *sweep.zip)
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


def _points(study: Study, sweep: Sweep) -> Iterator[InputError]:
    """Every value of the sweep makes a right scenario."""
    lengths = {len(values) for values in sweep.zip.values()}
    if len(lengths) > 1:
        found = f"lists of {', '.join(map(str, sorted(lengths)))} values"
        yield study.document.error(("sweep", "zip"), expected="lists of one length", found=found)
        return
    size = prod(len(values) for values in sweep.grid.values()) * max(lengths, default=1)
    if size > MOST_POINTS:
        expected = f"at most {MOST_POINTS} points"
        yield study.document.error(("sweep", "grid"), expected=expected, found=str(size), key=True)
        return
    known = [scenario.variant for scenario in study.scenarios]
    names = [name for name in sweep.variants or known if name in known]
    tried = [
        (point, _tried(study, name, point))
        for point in ([_override(study, *address) for address in places] for places in _looked_at(sweep))
        for name in names
    ]
    if sweep.impossible == "skip":
        tried = _never_right(tried) if size <= _LOOKED_AT else []
    yield from {str(error): error for _, wrong in tried for error in wrong}.values()


_Tried = list[tuple[list[tuple[Path, Node]], list[InputError]]]


def _never_right(tried: _Tried) -> _Tried:
    """The points with a value that makes a right scenario in no other point either."""
    right = {node.at for point, wrong in tried if not wrong for _, node in point}
    return [(point, wrong) for point, wrong in tried if any(node.at not in right for _, node in point)]


def _looked_at(sweep: Sweep) -> Iterator[list[tuple[Path, int]]]:
    """Points as (where the values stand, which of them): all of a small sweep, else every value once."""
    grid = [[(("sweep", "grid", key), i) for i in range(len(values))] for key, values in sweep.grid.items()]
    rows = max((len(values) for values in sweep.zip.values()), default=1)
    zipped = [[(("sweep", "zip", key), row) for key in sweep.zip] for row in range(rows)]
    if prod(map(len, grid)) * rows <= _LOOKED_AT:
        for point in product(*grid):
            for row in zipped:
                yield [*point, *row]
        return
    for axis, values in enumerate(grid):
        for value in values:
            yield [*(other[0] for n, other in enumerate(grid) if n != axis), value, *zipped[0]]
    for row in zipped:
        yield [*(values[0] for values in grid), *row]


def _override(study: Study, path: Path, index: int) -> tuple[Path, Node]:
    return tuple(str(path[-1]).split(".")), study.document.find((*path, index))[0]


def _tried(study: Study, variant: str, overrides: list[tuple[Path, Node]]) -> list[InputError]:
    """What is wrong with a variant under these overrides."""
    try:
        validate(Scenario, variant_with(study, variant, overrides), {"allow_code": study.allow_code})
    except InputErrors as error:
        return list(error.errors)
    except InputError as error:
        return [error]
    return []
