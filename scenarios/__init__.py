"""Scenarios: files that say what is simulated, and what is made of their runs.

from scenarios import load
result = load("quickstart").run()
result.summary, result.steps, result.compare()
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenarios.loading import Study

__all__ = ["load"]


def load(
    file: str | Path, sets: Sequence[str] = (), *, seed: int | None = None, allow_code: bool = False
) -> Study:
    """Load a scenario file; `run()` of what it gives runs it.

    Args:
        file: FILE.yaml, FILE.yaml#NAME, or the name of a shipped scenario.
        sets: overrides `a.b=value`, the last word on every variant.
        seed: instead of the file's.
        allow_code: let `kind: "package.module:Class"` load that class.

    Raises:
        InputErrors: everything that is wrong.
    """
    from scenarios.loading import load as read

    return read(file, sets, seed=seed, allow_code=allow_code)
