"""Measured values from a file: one number a line (CSV, a heading allowed), or a YAML or JSON list."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from pathlib import Path

from simulator.errors import PacelineError
from simulator.yaml_source import parse, shown

LARGEST_FILE = 16 * 2**20  # bytes
MOST_VALUES = 1_000_000


def read_samples(path: str | Path) -> tuple[float, ...]:
    """The positive numbers in a file, in rising order.

    Raises:
        ValueError: no such file, too large, empty, or a value that is no positive number (with its line).
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {str(path)!r}")
    stamp = file.stat()
    return _read(file.resolve(), stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=64)
def _read(file: Path, changed: int, size: int) -> tuple[float, ...]:
    """As `read_samples`, once for each version of the file."""
    if size > LARGEST_FILE:
        raise ValueError(f"{file} has {size} bytes; at most {LARGEST_FILE} are read")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a text file (byte {error.start})") from None
    listed = file.suffix.lower() in (".yaml", ".yml", ".json")
    values = _from_list(text, file) if listed else _from_lines(text, file)
    if not values:
        raise ValueError(f"{file} holds no values")
    if len(values) > MOST_VALUES:
        raise ValueError(f"{file} holds {len(values)} values; at most {MOST_VALUES} are read")
    return tuple(sorted(values))


def _from_lines(text: str, file: Path) -> list[float]:
    """One number a line; blank lines and lines that begin with # are passed over."""
    values: list[float] = []
    first = True
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.strip().strip('"').strip()
        if not entry or entry.startswith("#"):
            continue
        try:
            value = float(entry)
        except ValueError:
            if first and "," not in entry:  # the column's heading
                first = False
                continue
            raise ValueError(f"{file}:{number}: found {entry[:40]!r}, expected one number a line") from None
        first = False
        values.append(_positive(value, f"{file}:{number}"))
    return values


def _from_list(text: str, file: Path) -> list[float]:
    """A YAML 1.2 or JSON list of numbers."""
    try:
        read = parse(text, str(file))[0].data
    except PacelineError as error:
        raise ValueError(str(error)) from None
    if not isinstance(read, list):
        raise ValueError(f"{file}: expected a list of numbers")
    values = []
    for place, value in enumerate(read):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{file}: entry {place} is {shown(value)}, expected a number")
        values.append(_positive(float(value), f"{file}: entry {place}"))
    return values


def _positive(value: float, place: str) -> float:
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{place}: found {value}, expected a positive number")
    return value
