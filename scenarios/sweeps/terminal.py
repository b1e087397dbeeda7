"""What `paceline sweep` shows: how far it is and how long it takes still, and at the end what was found."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.console import SUMMARY, clean, complain, console, print_table, say
from scenarios.sweeps.points import as_text, short_keys
from scenarios.sweeps.settings import Setting, said, settings, title
from scenarios.sweeps.sweep import Swept
from scenarios.sweeps.table import Row
from scenarios.words import plural, seconds

if TYPE_CHECKING:
    from rich.progress import Progress

    from scenarios.sweeps.estimate import Listed

#: Seconds between two lines of progress where there is no terminal.
LINE_EVERY = 30.0

#: Settings in the table at the end, and failures told of.
MOST_SETTINGS, MOST_FAILURES = 40, 5


def left(elapsed: float, done: int, total: int) -> float:
    """Seconds that remain if the rest goes on as it went.

    >>> left(10.0, 5, 20)
    30.0
    """
    return elapsed / done * (total - done) if done else float("nan")


class SweepBar:
    """A bar on a terminal, a line now and then elsewhere; on standard error."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty() and not quiet
        self._progress: Progress | None = None
        self._task: Any = None
        self._total = self._to_run = self._ended = self._failed = self._finished = 0
        self._began = self._told = time.monotonic()

    def __enter__(self) -> SweepBar:
        if self._terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[at]}"),
            )
            self._progress = Progress(*columns, console=console(sys.stderr), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("checking", total=None, at="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def checked(self, done: int, total: int) -> None:
        """So many points have been checked."""
        if self._progress is not None and (done == total or not done % 50):
            self._progress.update(self._task, completed=done, total=total, at=f"{done:,} of {total:,} points")

    def begins(self, total: int, finished: int, root: Path) -> None:
        """The runs begin."""
        self._total, self._finished, self._to_run = total, finished, total - finished
        self._began = self._told = time.monotonic()
        if self._progress is not None:
            self._progress.update(self._task, description="runs", completed=finished, total=total, at="")
        elif not self._quiet:
            again = f", {finished:,} of them finished already" if finished else ""
            complain(f"{plural(total, 'run')}{again}: {root}")

    def ends(self, row: Row) -> None:
        """A run has ended."""
        self._ended += 1
        self._failed += row["status"] == "failed"
        now = time.monotonic()
        if self._progress is not None:
            at = self._at(now)
            self._progress.update(self._task, completed=self._finished + self._ended, at=clean(at))
        elif not self._quiet and now - self._told > LINE_EVERY:
            self._told = now
            complain(self._at(now))

    def _at(self, now: float) -> str:
        elapsed = now - self._began
        remains = left(elapsed, self._ended, self._to_run)
        failed = f", {self._failed:,} failed" if self._failed else ""
        done = f"{self._finished + self._ended:,} of {self._total:,} runs{failed}"
        return f"{done}, {seconds(elapsed)} gone, about {seconds(remains)} left"


def print_swept(swept: Swept) -> None:
    """The best values, or the settings; then what failed, and where everything lies."""
    if swept.best:
        print_best(swept.best)
    else:
        _print_settings(settings(swept.rows, swept.keys), swept.keys)
    failed = [row for row in swept.rows if row["status"] == "failed"]
    parts = [f"{swept.count('done'):,} done"]
    parts += [f"{swept.count(one):,} {one}" for one in ("failed", "skipped") if swept.count(one)]
    say(f"\n{plural(len(swept.rows), 'run')}: {', '.join(parts)}")
    for row in failed[:MOST_FAILURES]:
        say(f"failed: {row['run_dir']}: {row['error']}")
    if len(failed) > MOST_FAILURES:
        say(f"and {len(failed) - MOST_FAILURES:,} more: the column `error` of the table says why")
    say(str(swept.root / "sweep.parquet"))
    if (swept.root / "report.html").exists():
        say(str(swept.root / "report.html"))


def print_best(best: Mapping[str, Any]) -> None:
    """A row for each choice."""
    keys = [*best["within"], best["by"]]
    short = short_keys(keys)
    metric = str(best["metric"])
    head = [
        *(short[key] for key in best["within"]),
        f"best {short[best['by']]}",
        title(metric),
        "95 % interval",
        "",
    ]
    rows = []
    for one in best["choices"]:
        around = [one["ci_low"], one["ci_high"]]
        interval = "-" if None in around else f"{said(metric, around[0])} .. {said(metric, around[1])}"
        cells = ["-" if one[key] is None else as_text(one[key]) for key in keys]
        rows.append([*cells, said(metric, one["mean"], "never"), interval, remark(one)])
    print_table(head, rows, numbers_from=len(best["within"]))


def remark(choice: Mapping[str, Any]) -> str:
    """What must be known beside a best value."""
    parts = ["last of its list: widen it"] if choice["at_end"] else []
    if choice["without"]:
        parts.append(f"{choice['without']} of {choice['runs']} runs without")
    return "; ".join(parts)


def _print_settings(found: Sequence[Setting], keys: Sequence[str]) -> None:
    short = short_keys(keys)
    shown = [one for one in SUMMARY if any(setting.numbers(one.key) for setting in found)]
    several = len({one.variant for one in found}) > 1 or not keys
    head = [
        *(["variant"] * several),
        *(short[key] for key in keys),
        "seeds",
        *(column.title for column in shown),
    ]
    rows = []
    for one in found[:MOST_SETTINGS]:
        named = [*([one.variant] * several), *(as_text(one.values[key]) for key in keys)]
        numbers = [column.write(one.mean(column.key)) for column in shown]
        rows.append([*named, str(len(one.rows)), *numbers])
    by_rank = sorted(range(len(shown)), key=lambda place: -shown[place].rank)
    first = several + len(keys) + 1
    print_table(head, rows, numbers_from=first - 1, spare=[place + first for place in by_rank])
    if len(found) > MOST_SETTINGS:
        say(f"and {len(found) - MOST_SETTINGS:,} more settings: see the table")


def print_listed(listed: Listed) -> None:
    """The runs that a sweep would make."""
    keys = list(listed.plan.keys)
    short = short_keys(keys)
    head = ["run", *(["variant"] if listed.several else []), *(short[key] for key in keys), "seed", ""]
    rows = [
        [
            str(entry.number), *([entry.variant] if listed.several else []),
            *(as_text(entry.values[key]) for key in keys), str(entry.seed), listed.state(entry),
        ]
        for entry in listed.plan.entries
    ]  # fmt: skip
    print_table(head, rows, numbers_from=99)
    say(f"\n{listed.sentence}")
    say(str(listed.root))
