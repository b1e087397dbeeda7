"""What the report of a sweep is about: the table in its directory, and what the sweep says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.files import read_json
from scenarios.report.figure import plain
from scenarios.study import Best
from scenarios.sweeps import table
from scenarios.sweeps.best import best_of, is_number
from scenarios.sweeps.points import as_text, short_keys
from scenarios.sweeps.settings import Measure, Setting, measure_of, settings
from scenarios.sweeps.sweep import ABOUT
from scenarios.sweeps.table import Row


@dataclass(frozen=True)
class Axis:
    """What was swept together: one key of the grid, or all keys of the zip.

    Attributes:
        keys: the keys.
        title: their short names.
        points: their values, a tuple of cells of the table each.
    """

    keys: tuple[str, ...]
    title: str
    points: Sequence[tuple[Any, ...]]

    @property
    def labels(self) -> list[str]:
        """The points as a chart writes them; a mapping by its kind where that tells it apart."""
        shown = [", ".join(as_text(value) for value in point) for point in self.points]
        brief = [_brief(one) for one in shown]
        return [plain(one, 28) for one in (brief if len(set(brief)) == len(brief) else shown)]

    @property
    def numbers(self) -> list[float] | None:
        """The values of a single key of numbers."""
        numeric = len(self.keys) == 1 and all(is_number(point[0]) for point in self.points)
        return [float(point[0]) for point in self.points] if numeric else None

    @property
    def ascends(self) -> bool:
        """Whether the points are numbers or quantities, and not names."""
        return all(is_number(one) or _QUANTITY.fullmatch(str(one)) for point in self.points for one in point)


_QUANTITY = re.compile(r"[-+.0-9e]+ \S+")


def _brief(shown: str) -> str:
    _, found, rest = shown.partition('"kind":"')
    return rest.partition('"')[0] if found and shown.startswith("{") else shown


@dataclass(frozen=True)
class Sweeping:
    """All that the report is about.

    Attributes:
        about: what the sweep says of itself.
        rows: its table.
        axes: what was swept.
        settings: the rows by variant and point, those left out apart.
        measure: what decides.
        best: as `best_of` gives it; empty if nothing was tuned.
    """

    about: Mapping[str, Any]
    rows: Sequence[Row]
    axes: Sequence[Axis]
    settings: Sequence[Setting]
    measure: Measure
    best: Mapping[str, Any]

    @property
    def keys(self) -> list[str]:
        """The keys swept."""
        return list(self.about["keys"])

    @property
    def variants(self) -> list[str]:
        """The variants, in order."""
        return list(self.about["variants"])

    @property
    def drawn(self) -> list[Axis]:
        """The axes along which something varies: the one tuned first, then the longest."""
        by = self.best.get("by")
        there = [axis for axis in self.axes if len(axis.points) > 1]
        return sorted(there, key=lambda axis: (by not in axis.keys, -len(axis.points)))

    @property
    def tuned(self) -> tuple[Axis, Axis] | None:
        """What a best value was looked for within, if that is two things that vary: across, and up."""
        if len(within := self.best.get("within", ())) != 2:
            return None
        all_axes = {axis.keys: axis for axis in self.axes if len(axis.points) > 1}
        if len(self.variants) > 1:
            all_axes["variant",] = Axis(("variant",), "variant", [(one,) for one in self.variants])
        pair = [all_axes.get((key,)) for key in sorted(within, key=lambda key: key == "variant")]
        return (pair[0], pair[1]) if pair[0] and pair[1] else None

    def chosen(self, group: Mapping[str, Any]) -> Setting | None:
        """The runs at the best value of a group: values of the keys of `within`."""
        by = self.best["by"]
        for one in self.best["choices"]:
            if all(one[key] == value for key, value in group.items()):
                at = (
                    {**group, by: one[by]} if one[by] is not None else dict(group)
                )  # none: all that was tried
                rows = [row for row in self.rows if all(row[key] == value for key, value in at.items())]
                return Setting(str(group.get("variant", "")), {**at, by: one[by]}, rows) if rows else None
        return None

    def named(self, setting: Setting) -> str:
        """A setting in words: its variant where there are several, and what varies."""
        short = short_keys(self.keys)
        varied = [key for axis in self.axes if len(axis.points) > 1 for key in axis.keys]
        values = [f"{short[key]} {as_text(setting.values[key])}" for key in varied]
        return ", ".join([*([setting.variant] if len(self.variants) > 1 or not values else []), *values])


def gather(root: Path) -> Sweeping:
    """Read what a sweep has left in its directory.

    Raises:
        InputError: it holds no sweep.
    """
    about, rows = read_json(root / ABOUT), table.read(root)
    cells = {key: table.cells(values) for key, values in about["keys"].items()}
    found = settings([row for row in rows if row["status"] != "skipped"], list(cells))
    best = Best.model_validate(about["best"], strict=False) if about["best"] else None
    tuned = best_of(rows, best, cells[best.by]) if best else {}
    measure = measure_of(about["best"], about["scenario"], rows)
    return Sweeping(about, rows, _axes(cells, about["zip"]), found, measure, tuned)


def _axes(cells: Mapping[str, list[Any]], zipped: Sequence[str]) -> list[Axis]:
    short = short_keys(list(cells))
    axes = [
        Axis((key,), short[key], [(value,) for value in values])
        for key, values in cells.items()
        if key not in zipped
    ]
    if zipped:
        rows = list(zip(*(cells[key] for key in zipped), strict=True))
        axes.append(Axis(tuple(zipped), ", ".join(short[key] for key in zipped), rows))
    return axes
