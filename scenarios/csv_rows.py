"""Reads tables in CSV strictly: what is wrong is said with file, line and column's name."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.errors import InputError
from simulator.validation import did_you_mean

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_SHOWN = 60  # characters of a cell in a message

Cell = Callable[[str], Any]
"""Makes a value of a cell's text; a ValueError says what would be right."""


def name(text: str) -> str:
    """Any text but none."""
    if not text:
        raise ValueError("a name")
    return text


def whole(text: str) -> int:
    """A whole number, 0 or more."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("a whole number, 0 or more")
    return int(text)


def number(least: float = -math.inf, above: float = -math.inf) -> Cell:
    """A finite number, at least `least` and more than `above`."""
    words = "a finite number"
    if least > -math.inf:
        words += f", {least:g} or more"
    if above > -math.inf:
        words += f" above {above:g}"

    def read(text: str) -> float:
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not (least <= value < math.inf and value > above):
            raise ValueError(words)
        return value

    return read


class Table:
    """A CSV file with a header.

    Args:
        path: the file; UTF-8.
        columns: how to read each column.
        optional: those of them that need not be there.
    """

    def __init__(self, path: Path, columns: Mapping[str, Cell], optional: Sequence[str] = ()) -> None:
        self.path = path
        self._columns = columns
        self._optional = frozenset(optional)

    def error(
        self, line: int | None, column: str, expected: str, found: str = "", hint: str = ""
    ) -> InputError:
        """An error about a cell, or about the file where `line` is None."""
        shown = found if len(found) <= _SHOWN else found[: _SHOWN - 3] + "..."
        return InputError(expected, shown, column, hint, str(self.path), line)

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number (from 1) and values of each row. Empty lines do not count.

        Raises:
            InputError: the first thing that is wrong.
        """
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                yield from self._parsed(csv.reader(file, strict=True))
        except OSError as error:
            raise self.error(None, "", "a file that can be read", error.strerror or "none") from None
        except UnicodeDecodeError:
            raise self.error(None, "", "text in UTF-8", "other bytes") from None

    def _parsed(self, reader: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        header: list[str] | None = None
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if header is None:
                    header = self._header([cell.strip() for cell in cells], reader.line_num)
                    continue
                yield reader.line_num, self._row(header, cells, reader.line_num)
        except csv.Error as error:
            raise self.error(reader.line_num, "", "a line of CSV", str(error)) from None
        if header is None:
            raise self.error(1, "", f"a header {','.join(self._columns)}", "nothing")

    def _header(self, header: list[str], line: int) -> list[str]:
        for column in header:
            if column not in self._columns:
                hint = did_you_mean(column, self._columns)
                expected = f"columns {','.join(self._columns)}"
                raise self.error(line, column, expected, f"the unknown column {column!r}", hint)
            if header.count(column) > 1:
                raise self.error(line, column, "each column once", "it twice")
        for column in self._columns:
            if column not in header and column not in self._optional:
                raise self.error(line, column, f"a column {column}", f"columns {','.join(header)}")
        return header

    def _row(self, header: list[str], cells: list[str], line: int) -> dict[str, Any]:
        if len(cells) != len(header):
            raise self.error(line, "", f"{len(header)} cells, as in the header", f"{len(cells)}")
        row = {}
        for column, cell in zip(header, cells, strict=True):
            text = cell.strip()
            try:
                row[column] = self._columns[column](text)
            except ValueError as error:
                raise self.error(line, column, str(error), repr(text)) from None
        return row
