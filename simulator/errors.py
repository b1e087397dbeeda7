"""What can go wrong, as a small class family. The command line turns these into messages and exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class PacelineError(Exception):
    """Anything Paceline tells its user; never shown with a traceback."""


@dataclass
class InputError(PacelineError):
    """Input that is wrong: exit code 2. Fields as in the JSON form of errors (`schema.md` 5).

    Attributes:
        found: what stood there, as text.
        expected: what would be right.
        hint: how to mend it ("did you mean 'h'?"), may be empty.
        file, line, column: where (lines and columns from 1), None where there is no file.
        field: dotted path of the key, e.g. `training.strategy.h`.
    """

    expected: str
    found: str = ""
    field: str = ""
    hint: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(p) for p in (self.file, self.line, self.column) if p is not None)
        said = f"found {self.found}; " if self.found else ""
        parts = [p for p in (place, self.field, f"{said}expected {self.expected}") if p]
        return ": ".join(parts) + (f" ({self.hint})" if self.hint else "")

    def as_json(self) -> dict[str, Any]:
        """The object printed on standard error with `--json`."""
        keys = ("file", "line", "column", "field", "found", "expected", "hint")
        return {"error": {key: getattr(self, key) for key in keys}}


class CohortError(PacelineError):
    """A verb that a cohort (one clock vector for all workers) cannot run: `auto` falls back to processes."""

    def __init__(self, verb: str, why: str) -> None:
        super().__init__(f"{verb}: {why}; run it with --engine process")
        self.verb = verb


class StuckError(PacelineError):
    """The run cannot proceed: every process waits. Says who waits for whom."""


class VerbError(PacelineError):
    """A strategy used a verb wrongly, for example without `yield from`."""
