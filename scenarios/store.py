"""Run directories: written so that only a finished run is ever seen, read back, found, used again.

A run directory holds `scenario.yaml`, `summary.json`, the tables, `trace.json.gz`, `report.html`, and last of
all `manifest.json`: a directory without a manifest is not a run. A new directory is filled beside its place
and moved there whole; in one that exists our files are replaced and nobody else's are touched.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from scenarios import tables
from scenarios.files import read_json, read_yaml, write_json, write_text
from scenarios.manifest import manifest_of, scenario_hash, source_hash, version
from scenarios.yaml_text import as_yaml
from simulator.errors import InputError
from simulator.result import COLUMNS, Columns, Result

if TYPE_CHECKING:
    import pandas as pd

#: The record levels, each with the tables that it keeps.
RECORDS: dict[str, tuple[str, ...]] = {
    "summary": ("workers", "links", "curve"),
    "steps": ("workers", "links", "curve", "steps"),
    "all": ("workers", "links", "curve", "steps", "spans", "transfers", "loads"),
}

#: What a run directory may hold of ours; whatever else lies there stays untouched.
FILES = (
    "scenario.yaml", "summary.json", *(f"{name}.parquet" for name in COLUMNS), "trace.json.gz", "report.html",
    "error.json", "manifest.json",
)  # fmt: skip

#: More directories than this below one place are not searched for runs.
MAX_DIRECTORIES = 100_000


class Framed(ABC):
    """What has tables, as data frames: a run, or all runs of a study."""

    @abstractmethod
    def frame(self, name: str) -> pd.DataFrame:
        """A table by name.

        Raises:
            InputError: it was not recorded.
        """

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a worker's local step."""
        return self.frame("steps")

    @cached_property
    def spans(self) -> pd.DataFrame:
        """One row a span of a worker's time."""
        return self.frame("spans")

    @cached_property
    def workers(self) -> pd.DataFrame:
        """One row a worker."""
        return self.frame("workers")

    @cached_property
    def curve(self) -> pd.DataFrame:
        """One row an evaluation."""
        return self.frame("curve")

    @cached_property
    def links(self) -> pd.DataFrame:
        """One row a directed link."""
        return self.frame("links")


@dataclass(frozen=True)
class Run(Framed):
    """One finished run: read from its directory, or fresh from the engine with its tables still in memory.

    Attributes:
        scenario: the resolved scenario of this variant and seed.
        manifest: what made the run (`manifest.json`).
        summary: as `summary.json`.
        path: its directory; None if nothing was written.
        result: the tables in memory; None if they lie in files.
        label: another name than the variant's, to tell runs of several directories apart.
    """

    scenario: Mapping[str, Any]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    path: Path | None = None
    result: Result | None = None
    label: str | None = None

    @property
    def variant(self) -> str:
        """Name of the variant, or the label."""
        return self.label or str(self.summary.get("variant") or self.manifest.get("variant") or "default")

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.summary.get("seed") or 0)

    def columns(self, name: str, only: tuple[str, ...] | None = None) -> Columns | None:
        """A table as columns (all, or `only` some); None where the run did not record it."""
        if self.result is not None:
            table: Columns | None = getattr(self.result, name)
            return table
        if self.path is None or not (file := self.path / f"{name}.parquet").is_file():
            return None
        return tables.read(file, only)

    def frame(self, name: str) -> pd.DataFrame:
        """A table as a data frame.

        Raises:
            InputError: the run did not record it.
        """
        columns = self.columns(name)
        if columns is None:
            raise InputError(
                field=name,
                expected="a table that was recorded",
                hint="run again with --record all; a curve needs a problem",
            )
        return tables.frame(columns)


def file_name(name: str) -> str:
    """A name of a scenario or variant as one safe component of a path.

    >>> file_name("sync"), file_name("../../etc"), file_name(".."), file_name("a b")
    ('sync', '..%2F..%2Fetc', '%2E%2E', 'a%20b')
    """
    quoted = quote(name, safe="-_.+=@,~")
    quoted = re.sub(r"^\.+$", lambda dots: "%2E" * len(dots[0]), quoted) or "%00"
    return (
        quoted if len(quoted) <= 120 else f"{quoted[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    )


def write_run(
    path: Path, document: Mapping[str, Any], result: Result, *, record: str = "all", wall_s: float = 0.0,
    source: str | None = None, trace: bool = True,
) -> Run:  # fmt: skip
    """Write a finished run to its directory.

    Args:
        path: the directory; what is there of an older run is replaced, other files stay.
        document: the resolved scenario of this variant and seed, as JSON can hold it.
        result: what the engine handed over.
        record: `summary`, `steps` or `all`: which tables are kept.
        wall_s: seconds the engine took, for the manifest.
        source: the scenario file, for the manifest.
        trace: write `trace.json.gz` too (where spans are kept).
    """
    made = manifest_of(document, result, record=record, wall_s=wall_s, source=source)
    with _directory(path) as place:
        write_text(as_yaml(document), place / "scenario.yaml")
        write_json(result.summary, place / "summary.json")
        for name, columns in result.tables().items():
            if name in RECORDS[record]:
                tables.write(columns, place / f"{name}.parquet")
        if trace and record == "all" and result.spans is not None:
            from scenarios.perfetto import write_trace

            write_trace(result, place / "trace.json.gz", title=f"{document.get('name')} {made['variant']}")
        write_json(made, place / "manifest.json")
    return Run(document, made, result.summary, path, result)


def write_files(path: Path, files: Mapping[str, bytes]) -> None:
    """Write the directory of a run that was made elsewhere, from the contents of its files."""
    with _directory(path) as place:
        for name in FILES:
            if name in files:
                (place / name).write_bytes(files[name])


class _directory:
    """A place to fill; moved to `path` whole at the end, or file by file where that exists, manifest last."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Path:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and not self.path.is_dir():
                raise NotADirectoryError(f"{self.path} is a file")
            self.place = Path(tempfile.mkdtemp(dir=self.path.parent, prefix=f".{self.path.name}."))
        except OSError as error:
            raise InputError(
                field="--out", found=str(error), expected="a directory that can be written"
            ) from error
        self.place.chmod(0o755)
        return self.place

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._move()
        finally:
            shutil.rmtree(self.place, ignore_errors=True)

    def _move(self) -> None:
        if not self.path.exists():
            try:
                os.rename(self.place, self.path)
                return
            except OSError:
                if not self.path.is_dir():
                    raise  # else somebody has made the same run meanwhile
        clear(self.path)
        for name in FILES:  # the manifest is the last of them
            if (self.place / name).exists():
                os.replace(self.place / name, self.path / name)


def clear(path: Path) -> None:
    """Remove our files of a run from a directory, the manifest first: from then on it is no run."""
    for name in reversed(FILES):
        (path / name).unlink(missing_ok=True)


def read_run(path: Path) -> Run:
    """Read a run back; its tables are read when asked for.

    Raises:
        InputError: the directory is no finished run.
    """
    if not (path / "manifest.json").is_file():
        raise InputError(
            file=str(path), expected="the directory of a finished run", found="no manifest.json in it",
            hint="give a directory that `paceline run` has written",
        )  # fmt: skip
    made, summary = read_json(path / "manifest.json"), read_json(path / "summary.json")
    return Run(read_yaml(path / "scenario.yaml"), made, summary, path)


def finished(
    path: Path, document: Mapping[str, Any], record: str, inputs: Mapping[str, str] | None = None
) -> Run | None:
    """The run in a directory if it may be used again for this scenario, else None.

    It must be finished, of the same scenario, contents of input files and version of our code, and hold at
    least the tables asked for.
    """
    try:
        return read_run(path) if is_finished(path, document, record, inputs) else None
    except InputError:
        return None


def is_finished(
    path: Path, document: Mapping[str, Any], record: str, inputs: Mapping[str, str] | None = None
) -> bool:
    """Whether there is such a run; reads the manifest alone."""
    if not (path / "manifest.json").is_file():
        return False
    try:
        made = read_json(path / "manifest.json")
    except InputError:
        return False
    wanted: dict[str, Any] = {
        "paceline": version(), "source_hash": source_hash(), "scenario_hash": scenario_hash(document),
        "inputs": dict(inputs or {}),
    }  # fmt: skip
    levels = list(RECORDS)
    same = all(made.get(key, {}) == value for key, value in wanted.items())
    return same and made.get("record") in levels[levels.index(record) :]


def collect(paths: Sequence[Path]) -> list[Run]:
    """The runs of several directories; where two clash, variants are named after the directories.

    Raises:
        InputError: a directory without runs.
    """
    found = [(path, run) for path in paths for run in find_runs(path)]
    keys = [(run.variant, run.seed) for _, run in found]
    if len(set(keys)) == len(keys):
        return [run for _, run in found]
    names = _short_names([path for path, _ in found])
    lone = {path for path in paths if len({run.variant for where, run in found if where == path}) == 1}
    return [
        replace(run, label=names[path] if path in lone else f"{names[path]}/{run.variant}")
        for path, run in found
    ]


def _short_names(paths: Sequence[Path]) -> dict[Path, str]:
    """The last part of each path, or the whole where last parts are equal."""
    last = {path: path.resolve().name for path in paths}
    distinct = len(set(last.values())) == len(last)
    return last if distinct else {path: str(path) for path in last}


def find_runs(path: Path) -> list[Run]:
    """The runs of a directory: its own, or those its `summary.json` lists, or all below it in order of path.

    Raises:
        InputError: there is none.
    """
    if not path.is_dir():
        raise InputError(file=str(path), expected="the directory of a run", found="no directory of this name")
    if (path / "manifest.json").is_file():
        return [read_run(path)]
    found = [read_run(place) for place in (_listed(path) or _below(path))]
    if (path / "sweep.json").is_file():
        found = [replace(run, label=_setting(run, path)) for run in found]
    if not found:
        raise InputError(
            file=str(path), expected="a directory with finished runs", found="no manifest.json in or below",
            hint="give a directory that `paceline run` has written",
        )  # fmt: skip
    return found


def _setting(run: Run, root: Path) -> str:
    """What tells a run of a sweep apart: its variant and its values, as its directory names them."""
    assert run.path is not None
    return "/".join(run.path.relative_to(root).parts[:-1])


def _listed(path: Path) -> list[Path]:
    if not (path / "summary.json").is_file():
        return []
    runs = read_json(path / "summary.json").get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        return []
    places = [place(path, str(run.get("variant")), run.get("seed")) for run in runs]
    return places if all((p / "manifest.json").is_file() for p in places) else []


def _below(path: Path) -> Iterator[Path]:
    for count, (directory, subdirectories, files) in enumerate(os.walk(path)):
        if count > MAX_DIRECTORIES:
            raise InputError(
                file=str(path),
                found="more",
                expected=f"at most {MAX_DIRECTORIES} directories to search for runs",
            )
        subdirectories[:] = sorted(name for name in subdirectories if not name.startswith("."))
        if "manifest.json" in files:
            yield Path(directory)


def place(root: Path, variant: str, seed: object) -> Path:
    """Where a run of a study with several lies."""
    return root / file_name(variant) / f"seed-{seed}"


def write_study(root: Path, runs: list[Run]) -> None:
    """Write `summary.json` of a study: its runs in order."""
    if (root / "manifest.json").is_file():
        clear(root)  # a single run lay here; the directory now stands for several
    write_json({"runs": [dict(run.summary) for run in runs]}, root / "summary.json")
