"""What made a run: versions, hashes, circumstances. Decides whether a finished run may be used again."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from simulator.errors import InputError
from simulator.result import Result


@cache
def version() -> str:
    """Version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    try:
        return of("paceline")
    except PackageNotFoundError:
        return "0+source"


@cache
def source_hash() -> str:
    """Hash over our own source and data files: a changed simulator does not use old runs again."""
    root = Path(__file__).resolve().parent.parent
    seen = hashlib.sha256()
    for package in ("simulator", "topologies", "calibration", "scenarios"):
        for path in sorted((root / package).rglob("*.*")):
            if path.suffix in (".py", ".yaml", ".json", ".csv"):
                seen.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return seen.hexdigest()[:16]


def scenario_hash(document: Mapping[str, Any]) -> str:
    """Hash of a resolved scenario (of anything that JSON can hold), independent of the order of keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return content_hash(text.encode())


def file_hash(path: Path) -> str:
    """Hash of a file's content, however large.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError("a file that can be read", str(error), file=str(path)) from error


def content_hash(content: bytes) -> str:
    """Hash of a file's content."""
    return hashlib.sha256(content).hexdigest()


def manifest_of(
    document: Mapping[str, Any], result: Result, *, record: str, wall_s: float, source: str | None = None
) -> dict[str, Any]:
    """What made a run: enough to say whether it may be used again, and to run it once more."""
    summary = result.summary
    return {
        "paceline": version(),
        "source_hash": source_hash(),
        "scenario_hash": scenario_hash(document),
        "name": document.get("name"),
        "variant": summary.get("variant"),
        "seed": summary.get("seed"),
        "digest": summary.get("digest"),
        "record": record,
        "scenario_file": source,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "wall_s": round(wall_s, 3),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _package_versions(),
        "rows": {name: len(next(iter(table.values()))) for name, table in result.tables().items() if table},
        **result.facts,
    }


def _package_versions() -> dict[str, str]:
    loaded = ("numpy", "scipy", "numba", "simpy", "torch", "pyarrow")
    return {name: str(sys.modules[name].__version__) for name in loaded if name in sys.modules}
