"""Sparse samples from a file in svmlight's format (Joachims 1999; that of LIBSVM's data sets).

A sample a line, `label index:value index:value ... # comment`, indices rising within a line.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulator.fabric import FloatArray
from simulator.problems.batches import IntArray
from simulator.user_files import content

__all__ = ["SparseRows", "read_svmlight"]

MOST_ENTRIES = 2**27  # of the table of samples by non-zeros
MOST_FEATURES = 2**26


class SparseRows(NamedTuple):
    """Samples.

    Attributes:
        values: non-zeros of each sample, zeros behind them, shape (samples, most).
        columns: which feature each is, from 0, shape (samples, most).
        targets: labels as they are in the file, shape (samples,).
        entries: non-zeros of all samples together.
    """

    values: FloatArray
    columns: IntArray
    targets: FloatArray
    entries: int


def read_svmlight(path: str, first_index: int = 1) -> SparseRows:
    """The samples of a file, of a `.gz` as well.

    Args:
        path: of the file.
        first_index: number of the first feature in the file, 1 or 0.

    Raises:
        ValueError: there is no such file, or a line (told) is no sample.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {path!r}")
    stamp = file.stat()
    return _read(file, first_index, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=4)
def _read(file: Path, first_index: int, changed: int, size: int) -> SparseRows:
    targets: list[float] = []
    rows: list[tuple[list[int], list[float]]] = []
    for number, line in enumerate(content(file).split(b"\n"), start=1):
        told = line.split(b"#", maxsplit=1)[0].split()
        if told:
            try:
                targets.append(_finite(told[0]))
                rows.append(_features(told[1:], first_index))
            except ValueError as error:
                raise ValueError(f"{file}:{number}: {error}") from None
    if not rows:
        raise ValueError(f"{file} has no samples")
    most = max(1, *(len(columns) for columns, _ in rows))
    if most * len(rows) > MOST_ENTRIES:
        raise ValueError(
            f"{file} has {len(rows)} samples of up to {most} values: more than is kept in memory"
        )
    table, places = np.zeros((len(rows), most)), np.zeros((len(rows), most), dtype=np.int64)
    for row, (columns, values) in enumerate(rows):
        places[row, : len(columns)], table[row, : len(values)] = columns, values
    return SparseRows(table, places, np.array(targets), sum(len(columns) for columns, _ in rows))


def _features(pairs: list[bytes], first_index: int) -> tuple[list[int], list[float]]:
    columns, values = [], []
    for pair in pairs:
        index, colon, value = pair.partition(b":")
        if not colon or not index.isdigit() or len(index) > 9:
            raise ValueError(f"found {_shown(pair)}, expected index:value with a whole index")
        columns.append(int(index) - first_index)
        values.append(_finite(value))
    if columns and columns[0] < 0:
        raise ValueError("found index 0, expected indices from 1 (or `first_index: 0`)")
    if any(a >= b for a, b in pairwise(columns)):
        raise ValueError("expected indices that rise within a line")
    if columns and columns[-1] >= MOST_FEATURES:
        raise ValueError(f"found index {columns[-1] + first_index}, expected fewer than {MOST_FEATURES}")
    return columns, values


def _finite(text: bytes) -> float:
    try:
        number = float(text.replace(b"_", b"?"))  # Python reads 1_0 as ten
    except ValueError:
        raise ValueError(f"found {_shown(text)}, expected a number") from None
    if not isfinite(number):
        raise ValueError(f"found {_shown(text)}, expected a finite number")
    return number


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
