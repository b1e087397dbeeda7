"""What can go wrong, as a small class family. The command line turns these into messages and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class PacelineError(Exception):
    """Anything Paceline tells its user; never shown with a traceback."""


@dataclass
class InputError(PacelineError):
    """Input that is wrong: exit code 2. Fields as in the JSON form of errors (ARCHITECTURE.md, Formats).

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


class InputErrors(InputError):
    """Everything found wrong with an input, in order; as a single InputError it is the first of them."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        flat: list[InputError] = []
        for error in errors:
            flat.extend(error.errors if isinstance(error, InputErrors) else (error,))
        first = flat[0]
        place = (first.file, first.line, first.column)
        super().__init__(first.expected, first.found, first.field, first.hint, *place)
        self.errors: tuple[InputError, ...] = tuple(flat)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)

    def as_json(self) -> dict[str, Any]:
        """The first error as `error`, and all of them as `errors`."""
        return {**super().as_json(), "errors": [error.as_json()["error"] for error in self.errors]}


class CohortError(PacelineError):
    """A verb that a cohort (one clock vector for all workers) cannot run: `auto` falls back to processes."""

    def __init__(self, verb: str, why: str) -> None:
        super().__init__(f"{verb}: {why}; run it with --engine process")
        self.verb = verb


class StuckError(PacelineError):
    """The run cannot proceed: every process waits. Says who waits for whom."""


class VerbError(PacelineError):
    """A strategy used a verb wrongly, for example without `yield from`."""
