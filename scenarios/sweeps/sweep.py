"""Carries out a sweep: hands out what is not finished yet, gathers what comes back, writes the table.

A run's directory appears whole when it is finished, so that whatever ends a sweep, every finished run is
found again by the next one, however many processes either has.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from scenarios import store
from scenarios.files import read_json, write_json, write_text
from scenarios.manifest import source_hash, version
from scenarios.sweeps import table
from scenarios.sweeps.best import best_of
from scenarios.sweeps.plan import MOST_RUNS, Entry, Plan, by_point, inputs_of, planned
from scenarios.sweeps.points import as_text, seeds_of
from scenarios.sweeps.table import Row
from scenarios.sweeps.work import TOKEN, Done, Task, made_by, write_failure
from simulator.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.loading import Study
    from scenarios.run import EngineKind, Record

Backend = Literal["local", "dask", "ray"]

#: Seconds between two writings of the table while runs go on.
TABLE_EVERY = 15.0

#: What a sweep says of itself, in its directory.
ABOUT = "sweep.json"

#: What it writes there besides the runs.
FILES = (ABOUT, TOKEN, "sweep.parquet", "sweep.csv", "summary.json", "report.html")


class Listener(Protocol):
    """Is told how a sweep goes."""

    def checked(self, done: int, total: int) -> None:
        """So many of its points have been checked."""
        ...

    def begins(self, total: int, finished: int, root: Path) -> None:
        """It begins; `finished` of its runs are used again."""
        ...

    def ends(self, row: Row) -> None:
        """A run has ended."""
        ...


class Silent:
    """A listener that says nothing."""

    def checked(self, done: int, total: int) -> None:
        """Nothing."""

    def begins(self, total: int, finished: int, root: Path) -> None:
        """Nothing."""

    def ends(self, row: Row) -> None:
        """Nothing."""


@dataclass(frozen=True)
class SweepOrder:
    """How to carry out a sweep; none of it changes the results.

    Attributes:
        out: directory to write to; by default runs/NAME-HASH8.
        jobs: runs at one time; by default as many as there are processors.
        backend: `local` processes, or a cluster of `dask` or `ray`.
        address: of the cluster.
        engine: as for any run.
        record: instead of the sweep's own.
        force: run anew what is finished.
        most: runs that are allowed.
        report: write `report.html`.
        listener: is told how it goes.
    """

    out: Path | None = None
    jobs: int | None = None
    backend: Backend = "local"
    address: str | None = None
    engine: EngineKind = "auto"
    record: Record | None = None
    force: bool = False
    most: int = MOST_RUNS
    report: bool = True
    listener: Listener = field(default_factory=Silent)


@dataclass(frozen=True)
class Swept:
    """What a sweep has found.

    Attributes:
        name: of the file.
        root: where everything lies.
        rows: one a run, in order of variants, points and seeds.
        best: the best values, as in the JSON; empty if the file asks for none.
        keys: the keys swept.
        input_failed: how many runs failed by what the file asks for.
        summaries: of the finished runs, by row.
    """

    name: str
    root: Path
    rows: Sequence[Row]
    best: Mapping[str, Any]
    keys: Sequence[str] = ()
    input_failed: int = 0
    summaries: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The table as a data frame."""
        import pandas as pd

        return pd.read_parquet(self.root / "sweep.parquet")

    def count(self, status: str) -> int:
        """Runs of a status: done, failed or skipped."""
        return sum(row["status"] == status for row in self.rows)

    @property
    def failed(self) -> int:
        """Runs that failed."""
        return self.count("failed")

    @property
    def as_json(self) -> dict[str, Any]:
        """What `sweep --json` prints: a run is its summary with its directory, status and swept values."""
        runs = []
        for number, row in enumerate(self.rows):
            summary = self.summaries.get(number, {})
            flat = {key for key, _ in table.flat(summary)}
            runs.append({**{key: value for key, value in row.items() if key not in flat}, **summary})
        return {"runs": runs, "best": dict(self.best), "failed": self.failed}

    @property
    def exit_code(self) -> int:
        """0 if nothing failed, 2 if only by the input, else 1."""
        return 0 if not self.failed else 2 if self.failed == self.input_failed else 1

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report, by default `report.html` in the sweep's directory."""
        from scenarios.report.sweep import write_sweep_report

        place = Path(path) if path is not None else self.root / "report.html"
        write_sweep_report(self.root, place)
        return place


def sweep(study: Study, order: SweepOrder | None = None) -> Swept:
    """Make every run of a file's sweep that is not finished yet.

    Args:
        study: a file with the key `sweep`, checked by `scenarios.check.resolve`.
        order: how.

    Raises:
        InputErrors: the sweep is wrong, or cannot be begun.
    """
    order = order or SweepOrder()
    plan = planned(study, most=order.most, tell=order.listener.checked)
    root = order.out or default_out(plan)
    record = order.record or plan.sweep.record
    with _alone_in(root):
        token = secrets.token_hex(8)
        _begin(root, plan, token)
        made = _Made(root, plan)
        made.found_again(record, order.force)
        order.listener.begins(len(plan.entries), made.again, root)
        try:
            for done in _results(order, _tasks(plan, made, order, record, token)):
                order.listener.ends(made.settled(done))
        finally:
            made.write_table()
            _clear_leftovers(root, plan)
        best = _best(plan, made.all_rows)
        found = Swept(
            study.name, root, made.all_rows, best, list(plan.keys), made.input_failed, made.summaries
        )
        if len(found.rows) <= MOST_RUNS:  # beyond it the table must do
            write_json(found.as_json, root / "summary.json")
    if order.report:
        found.report()
    return found


def is_sweep(root: Path) -> bool:
    """Whether a directory is that of a sweep."""
    return (root / ABOUT).is_file()


def default_out(plan: Plan) -> Path:
    """`runs/NAME-HASH8`: a place of its own for each content of a sweep."""
    return Path("runs") / f"{store.file_name(plan.study.name)}-{plan.digest[:8]}"


def _results(order: SweepOrder, tasks: Iterable[Task]) -> Iterator[Done]:
    from scenarios.sweeps import dask_cluster, local, ray_cluster

    backends: dict[Backend, Callable[..., Iterator[Done]]] = {
        "local": local.results, "dask": dask_cluster.results, "ray": ray_cluster.results
    }  # fmt: skip
    return backends[order.backend](tasks, order.jobs, order.address)


def _tasks(plan: Plan, made: _Made, order: SweepOrder, record: Record, token: str) -> Iterator[Task]:
    """The runs that are not finished, as they are wanted."""
    root, by, folder = str(made.root.resolve()), made_by(), str(Path.cwd())
    for entries in by_point(plan.entries):
        wanted = [entry for entry in entries if entry.number not in made.rows and entry.resolved]
        inputs = inputs_of(wanted[0].document) if wanted else {}
        for entry in wanted:
            yield Task(
                entry.number, root, entry.place, token, entry.document, inputs, order.engine, record,
                plan.study.allow_code, plan.study.file, by, folder,
            )  # fmt: skip


class _Made:
    """What has become of the runs so far."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self.root = root
        self.plan = plan
        self.rows: dict[int, Row] = {}
        self.cells = {
            key: dict(zip(map(as_text, values), table.cells(values), strict=True))
            for key, values in plan.keys.items()
        }
        self.summaries: dict[int, Mapping[str, Any]] = {}
        self.again = 0
        self.input_failed = 0
        self._next_table = time.monotonic() + TABLE_EVERY

    def found_again(self, record: Record, force: bool) -> None:
        """Take what is finished, and set apart what cannot be."""
        for entries in by_point(self.plan.entries):
            if entries[0].resolved is None:
                for entry in entries:
                    self.rows[entry.number] = self._row(entry, "skipped", error=entry.error)
            elif not force:
                inputs = inputs_of(entries[0].document)
                for entry in entries:
                    self._take(entry, record, inputs)

    def _take(self, entry: Entry, record: Record, inputs: Mapping[str, str]) -> None:
        place = self.root / entry.place
        if store.is_finished(place, entry.document, record, inputs):
            made, summary = read_json(place / "manifest.json"), read_json(place / "summary.json")
            self._keep(entry, summary, float(made.get("wall_s", 0.0)))
            self.again += 1

    def _keep(self, entry: Entry, summary: Mapping[str, Any], wall_s: float) -> None:
        self.summaries[entry.number] = summary
        self.rows[entry.number] = self._row(entry, "done", summary=summary, wall_s=round(wall_s, 3))

    def _row(self, entry: Entry, status: table.Status, **more: Any) -> Row:
        values = {key: self.cells[key][as_text(value)] for key, value in entry.values.items()}
        return table.row(entry.place, status, entry.variant, entry.seed, values, **more)

    def settled(self, done: Done) -> Row:
        """Note what became of a run."""
        entry = self.plan.entries[done.number]
        place = self.root / entry.place
        if done.summary is None:
            self.input_failed += not done.ours
            store.clear(place)  # an older run may lie there
            write_failure(place, done)
            self.rows[done.number] = self._row(entry, "failed", error=done.error)
        else:
            if done.files is not None:
                store.write_files(place, done.files)
            self._keep(entry, done.summary, done.wall_s)
        if time.monotonic() > self._next_table:
            self.write_table()
        return self.rows[done.number]

    @property
    def all_rows(self) -> list[Row]:
        """A row for every run; what has not run yet is skipped."""
        return [
            self.rows.get(entry.number) or self._row(entry, "skipped", error="not run yet")
            for entry in self.plan.entries
        ]

    def write_table(self) -> None:
        """Write the table, at most a tenth of the time."""
        began = time.monotonic()
        table.write(self.all_rows, self.root)
        now = time.monotonic()
        self._next_table = now + max(TABLE_EVERY, 10 * (now - began))


def _best(plan: Plan, rows: Sequence[Row]) -> dict[str, Any]:
    best = plan.sweep.best
    return best_of(rows, best, table.cells(plan.keys[best.by])) if best is not None else {}


def _begin(root: Path, plan: Plan, token: str) -> None:
    """Write what the sweep is."""
    if (root / "manifest.json").is_file():
        store.clear(root)  # a single run lay here
    _clear_leftovers(root, plan)
    shown = next((entry for entry in plan.entries if entry.resolved), None)
    write_json(
        {
            "paceline": version(), "source_hash": source_hash(), "name": plan.study.name,
            "file": plan.study.file, "digest": plan.digest,
            "keys": plan.keys, "zip": list(plan.sweep.zip), "cases": plan.sweep.cases,
            "variants": list(dict.fromkeys(entry.variant for entry in plan.entries)),
            "seeds": list(seeds_of(plan.study, plan.sweep)), "runs": len(plan.entries),
            "best": plan.sweep.best.model_dump(mode="json") if plan.sweep.best else None,
            "scenario": shown.document if shown else None,
        },
        root / ABOUT,
    )  # fmt: skip
    write_text(token, root / TOKEN)


def _clear_leftovers(root: Path, plan: Plan) -> None:
    """Remove what processes that were killed have left half written."""
    for parent in {(root / entry.place).parent for entry in plan.entries}:
        for left in parent.glob(".seed-*"):
            shutil.rmtree(left, ignore_errors=True)
    for name in FILES:
        for file in root.glob(f".{name}.*"):
            file.unlink(missing_ok=True)


@contextmanager
def _alone_in(root: Path) -> Iterator[None]:
    """A sweep's directory is worked on by one sweep at a time.

    Raises:
        InputError: the directory cannot be written, or another sweep is at work in it.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = (root / ".lock").open("a")
    except OSError as error:
        raise InputError("a directory that can be written", str(error), "--out") from error
    with file:
        _lock(file.fileno(), root)
        yield


def _lock(handle: int, root: Path) -> None:
    """Held until this process ends, however it does."""
    try:
        import fcntl
    except ImportError:
        return  # no such locks on this system
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError("a directory that no other sweep works in", str(root), "--out") from None
    except OSError:
        return  # a file system without locks
