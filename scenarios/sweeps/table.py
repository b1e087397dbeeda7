"""The table of a sweep: a row a run, in parquet and as CSV.

Columns: `run_dir` (below the sweep's directory), `status`, `variant`, `seed`, the keys swept, every number
and name of the summary (inner ones dotted), `error`, `wall_s`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from scenarios.files import write_text
from scenarios.sweeps.points import as_text
from simulator.errors import InputError

Row = dict[str, Any]
"""Column -> value; None where there is none."""

Status = Literal["done", "failed", "skipped"]

FIRST, LAST = ("run_dir", "status", "variant", "seed"), ("error", "wall_s")


def row(
    place: str,
    status: Status,
    variant: str,
    seed: int,
    values: Mapping[str, Any],
    summary: Mapping[str, Any] | None = None,
    error: str | None = None,
    wall_s: float | None = None,
) -> Row:
    """One row; the values as `cells` has them, the summary flat."""
    numbers = {key: value for key, value in flat(summary or {}) if key not in ("variant", "seed")}
    first = {"run_dir": place, "status": status, "variant": variant, "seed": seed}
    return {**first, **values, **numbers, "error": error, "wall_s": wall_s}


def cells(values: Sequence[Any]) -> list[Any]:
    """The values of a swept key as its column holds them: all numbers or all texts.

    >>> cells([1, 0.5]), cells([1, "auto"]), cells(["a", {"kind": "star"}]), cells([True, False])
    ([1.0, 0.5], ['1', 'auto'], ['a', '{"kind":"star"}'], [True, False])
    """
    kinds = {type(value) for value in values}
    if kinds in ({bool}, {int}, {str}):
        return list(values)
    return [float(value) if kinds <= {int, float} else as_text(value) for value in values]


def flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and texts within a mapping, by dotted keys.

    >>> dict(flat({"steps": 3, "step_time_s": {"mean": 0.1}, "band": {"simulated_s": [1.0, 2.0]}}))
    {'steps': 3, 'step_time_s.mean': 0.1, 'band.simulated_s.0': 1.0, 'band.simulated_s.1': 2.0}
    """
    for key, one in value.items():
        if isinstance(one, list | tuple):
            one = {str(index): item for index, item in enumerate(one)}
        if isinstance(one, Mapping):
            yield from flat(one, f"{prefix}{key}.")
        else:
            yield prefix + key, one


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns that any of the rows has, in order."""
    seen = dict.fromkeys(FIRST)
    for one in rows:
        seen.update(dict.fromkeys(one))
    return [*(name for name in seen if name not in LAST), *LAST]


def write(rows: Sequence[Row], root: Path) -> None:
    """Write `sweep.parquet` and `sweep.csv`, each whole or not at all."""
    names = columns_of(rows)
    _write_parquet(rows, names, root / "sweep.parquet")
    write_text(as_csv(rows, names), root / "sweep.csv")


def as_csv(rows: Iterable[Row], names: Sequence[str]) -> str:
    """The table as CSV: an empty cell where there is nothing."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[_cell(one.get(name)) for name in names] for one in rows])
    return out.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool) else value


def _write_parquet(rows: Sequence[Row], names: Sequence[str], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [_array([one.get(name) for one in rows]) for name in names]
    fresh = path.with_name(f".{path.name}.new")
    pq.write_table(pa.Table.from_arrays(arrays, names=list(names)), fresh, compression="zstd")
    fresh.replace(path)


def _array(values: Sequence[Any]) -> Any:
    """A column with gaps, of the narrowest of bool, int64, float64 and text that holds its values."""
    import pyarrow as pa

    there = [value for value in values if value is not None]
    kinds = {type(value) for value in there}
    gaps = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little"))
    if kinds == {bool}:
        bits = np.packbits([value is True for value in values], bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [gaps, pa.py_buffer(bits)])
    if kinds <= {int, float}:
        whole = kinds == {int}
        numbers = np.array([0 if value is None else value for value in values], "i8" if whole else "f8")
        return pa.Array.from_buffers(
            pa.int64() if whole else pa.float64(), len(values), [gaps, pa.py_buffer(numbers)]
        )
    texts = [b"" if value is None else as_text(value).encode() for value in values]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    buffers = [gaps, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers)


def read(root: Path) -> list[Row]:
    """The rows of a sweep's directory.

    Raises:
        InputError: there is no table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = root / "sweep.parquet"
    try:
        rows: list[Row] = pq.ParquetFile(path).read().to_pylist()
    except (OSError, pa.ArrowException) as error:
        hint = "`paceline sweep` writes one"
        raise InputError(
            "the table of a sweep", str(error).splitlines()[0], hint=hint, file=str(path)
        ) from error
    return rows
