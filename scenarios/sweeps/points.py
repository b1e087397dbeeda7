"""The points of a sweep: every combination of its grid, by every row of its zip, with names for folders."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from scenarios.compose import FILE_ONLY
from scenarios.expressions import SUMMARY_KEYS
from scenarios.planning import SeedRange
from scenarios.study import Sweep
from simulator.errors import InputError
from simulator.yaml_source import Node, Path, dotted

if TYPE_CHECKING:
    from scenarios.loading import Study

#: Keys of the summary that are no numbers: nothing can be best by them.
TEXTS = frozenset({"band", "executed", "costed", "validated", "digest", "seed", "variant", "mfu_peak_dtype"})

_OTHER_TYPE = re.compile(r"true|false|null|~|[-+]?[.0-9][-+.0-9e]*|", re.IGNORECASE)

_QUANTITY = re.compile(r"[-+.0-9e]+ [A-Za-z]+(/s)?")


@dataclass(frozen=True)
class Point:
    """One combination of the values swept.

    Attributes:
        values: swept key -> value, as the file writes it.
        overrides: the same, as nodes with their places in the file; shorter keys first.
    """

    values: Mapping[str, Any]
    overrides: tuple[tuple[Path, Node], ...]


CASE = "case"
"""What the table calls the cases of a sweep."""


def swept_keys(sweep: Sweep) -> dict[str, list[Any]]:
    """The keys swept, each with its values in order: the cases, those of the grid, those of the zip."""
    cases = {CASE: list(sweep.cases)} if sweep.cases else {}
    return cases | {key: list(values) for key, values in (*sweep.grid.items(), *sweep.zip.items())}


def points(study: Study, sweep: Sweep) -> Iterator[Point]:
    """The points of a sweep in order: cases outside, then the grid, its last key fastest, but for the zip."""
    whole = study.document
    cases: list[tuple[str, Node | None]] = [
        (name, whole.find(("sweep", "cases", name))[0]) for name in sweep.cases
    ] or [("", None)]
    grid = [
        [((key, whole.find(("sweep", "grid", key, i))[0]),) for i in range(len(values))]
        for key, values in sweep.grid.items()
    ]
    rows = max((len(values) for values in sweep.zip.values()), default=1)
    zipped = [
        tuple((key, whole.find(("sweep", "zip", key, row))[0]) for key in sweep.zip) for row in range(rows)
    ]
    for (name, body), parts in product(cases, product(*grid, zipped)):
        nodes = [pair for part in parts for pair in part]
        values = {key: node.data for key, node in nodes}
        given = [*(body.content.items() if body is not None else ()), *nodes]
        paths = ((tuple(key.split(".")), node) for key, node in given)
        overrides = sorted(paths, key=lambda pair: len(pair[0]))
        yield Point({CASE: name, **values} if body is not None else values, tuple(overrides))


def seeds_of(study: Study, sweep: Sweep) -> tuple[int, ...]:
    """The seeds of a sweep: its own, or the file's."""
    if sweep.seeds is None:
        return study.seeds
    return sweep.seeds.all if isinstance(sweep.seeds, SeedRange) else tuple(sweep.seeds)


def short_keys(keys: Sequence[str]) -> dict[str, str]:
    """The shortest ends of dotted keys that tell them apart.

    >>> short_keys(["training.optimizer.lr", "cluster.topology.link.bandwidth"])
    {'training.optimizer.lr': 'lr', 'cluster.topology.link.bandwidth': 'bandwidth'}
    >>> short_keys(["workload.batch", "problem.batch"])
    {'workload.batch': 'workload.batch', 'problem.batch': 'problem.batch'}
    """
    short = {}
    for key in keys:
        parts = key.split(".")
        ends = [".".join(parts[-length:]) for length in range(1, len(parts) + 1)]
        taken = [other for other in keys if other != key]
        short[key] = next(end for end in ends if not any(f".{other}".endswith(f".{end}") for other in taken))
    return short


def label(values: Mapping[str, Any]) -> str:
    """A point in words; different points have different ones.

    >>> label({"training.optimizer.lr": 0.03, "cluster.topology.link.bandwidth": "25 Gbit/s"})
    'lr=0.03,bandwidth=25 Gbit/s'
    """
    short = short_keys(list(values))
    return ",".join(f"{short[key]}={_unlike_others(value)}" for key, value in values.items())


def folder(values: Mapping[str, Any]) -> str:
    """The same, with quantities as a path can have them.

    >>> folder({"cluster.topology.link.bandwidth": "25 Gbit/s"})
    'bandwidth=25Gbit_s'
    """
    written = {key: value for key, value in values.items() if not isinstance(value, str)}
    written |= {
        key: value.replace(" ", "").replace("/", "_") if _QUANTITY.fullmatch(value) else value
        for key, value in values.items()
        if isinstance(value, str)
    }
    return label({key: written[key] for key in values})


def _unlike_others(value: Any) -> str:
    """A value as text that no other value has; a mapping by its kind and a hash."""
    if isinstance(value, dict):
        digest = hashlib.sha256(as_text(value).encode()).hexdigest()[:8]
        return f"{value.get('kind', '')}~{digest}"
    if isinstance(value, str) and _OTHER_TYPE.fullmatch(value):
        return f"'{value}'"
    return as_text(value)


def as_text(value: Any) -> str:
    """A value of a scenario as one line of text: texts as they are, all else as JSON.

    >>> as_text("25 Gbit/s"), as_text(0.1), as_text(1.0), as_text({"kind": "star"}), as_text([4, 4])
    ('25 Gbit/s', '0.1', '1', '{"kind":"star"}', '[4,4]')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def faults(study: Study, sweep: Sweep) -> Iterator[InputError]:
    """What is wrong with a sweep beyond the values themselves."""
    whole = study.document
    yield from _keys(whole, sweep)
    yield from _repeated(whole, sweep)
    seeds = sweep.seeds
    if isinstance(seeds, SeedRange) and seeds.max is not None:
        yield whole.error(
            ("sweep", "seeds", "max"),
            expected="a fixed number of seeds in a sweep",
            found=str(seeds.max),
            key=True,
        )
    best = sweep.best
    if best is not None and best.metric.split(".")[0] in TEXTS:
        known = ", ".join(sorted(SUMMARY_KEYS - TEXTS))
        yield whole.error(("sweep", "best", "metric"), expected=f"a number: {known}", found=repr(best.metric))
    if best is not None and best.by in best.within:
        place = ("sweep", "best", "within", best.within.index(best.by))
        yield whole.error(place, expected="keys other than the one tuned", found=repr(best.by))


def _keys(whole: Node, sweep: Sweep) -> Iterator[InputError]:
    """Keys that cannot be swept, or are given twice."""
    places: dict[str, Path] = {}
    for part in ("grid", "zip"):
        for key in getattr(sweep, part):
            path: Path = ("sweep", part, key)
            if key.split(".")[0] in FILE_ONLY or not all(key.split(".")):
                hint = "use sweep.seeds" if key == "seed" else ""
                yield whole.error(path, expected="a key of a scenario", found=repr(key), hint=hint, key=True)
            elif key in places:
                yield whole.error(path, expected="each key once", found=f"{key} again", key=True)
            places[key] = path
    for name in sweep.cases:
        for key in whole.find(("sweep", "cases", name))[0].content:
            path = ("sweep", "cases", name, key)
            if key.split(".")[0] in FILE_ONLY or not all(key.split(".")):
                yield whole.error(path, expected="a key of a scenario", found=repr(key), key=True)
            for other in places:
                if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
                    expected = f"cases or {places[other][1]} to give {other}, not both"
                    yield whole.error(path, expected=expected, found=key, key=True)
    for key, path in places.items():
        for other in places:
            if other != key and other.startswith(f"{key}."):
                yield from _inside(whole, path, tuple(other[len(key) + 1 :].split(".")), other)


def _inside(whole: Node, path: Path, below: Path, other: str) -> Iterator[InputError]:
    """Values of a swept key that hold a value for another swept key."""
    for index in range(len(whole.find(path)[0].content)):
        item = whole.find((*path, index))[0]
        if item.find(below)[1] == below:
            expected, found = f"no value for {other}, which is swept too", dotted(below)
            yield whole.error((*path, index), expected=expected, found=found)


def _repeated(whole: Node, sweep: Sweep) -> Iterator[InputError]:
    """Values that would make the same run twice."""
    for key, values in sweep.grid.items():
        seen = [as_text(value) for value in values]
        for index, text in enumerate(seen):
            if text in seen[:index]:
                place = ("sweep", "grid", key, index)
                yield whole.error(place, expected="each value once", found=f"{text} again")
    rows = [tuple(map(as_text, row)) for row in zip(*sweep.zip.values(), strict=False)]
    for index, row in enumerate(rows):
        if row in rows[:index]:
            place = ("sweep", "zip", next(iter(sweep.zip)), index)
            yield whole.error(place, expected="each row once", found=f"{', '.join(row)} again")
