"""What the command line shows: tables, progress bars, messages; no markup or escape codes out of files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

from scenarios.words import factor, nbytes, number, percent, plural, seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from scenarios.report.gather import Findings, Group
    from scenarios.run import Outcome
    from scenarios.schema import Scenario
    from scenarios.store import Run

#: Columns of a table that is not shown on a terminal.
WIDTH = 140


def clean(text: object) -> str:
    r"""A text without control characters, which could steer a terminal.

    >>> clean("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in str(text)
    )


def console(file: TextIO | None = None) -> Console:
    """A console that shows texts as they are."""
    from rich.console import Console

    out = file or sys.stdout
    width = None if out.isatty() else int(os.environ.get("COLUMNS", WIDTH))
    return Console(file=out, markup=False, highlight=False, emoji=False, width=width)


def print_json(value: Any) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int = 1, spare: Sequence[int] = ()
) -> None:
    """A table on standard output.

    Args:
        head: names of the columns.
        rows: their cells.
        numbers_from: columns from this one on are set to the right.
        spare: columns to leave out where the terminal is narrow, the first one first.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    out = console()
    kept = fitting([head, *rows], out.width, spare)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place in kept:
        side: Literal["right", "left"] = "right" if place >= numbers_from else "left"
        table.add_column(Text(clean(head[place])), justify=side, overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean(row[place])) for place in kept))
    out.print(table)


def fitting(rows: Sequence[Sequence[str]], width: int, spare: Sequence[int]) -> list[int]:
    """The columns that fit into `width` letters when those of `spare` are left out one after the other.

    >>> fitting([["variant", "loss", "bytes"], ["sync", "0.1", "44 MB"]], 18, [2, 1])
    [0, 1]
    """
    widths = [max(len(row[place]) for row in rows) + 3 for place in range(len(rows[0]))]
    kept = list(range(len(widths)))
    for place in spare:
        if sum(widths[one] for one in kept) - 3 <= width:
            break
        kept.remove(place)
    return kept


def say(text: str) -> None:
    """A line on standard output."""
    sys.stdout.write(clean(text) + "\n")


def complain(text: str) -> None:
    """A line on standard error."""
    sys.stderr.write(clean(text) + "\n")


class Bars:
    """Progress bars on standard error: one for each run under way."""

    def __init__(self, quiet: bool = False) -> None:
        self.again = 0
        self._shown = sys.stderr.isatty() and not quiet
        self._progress: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Bars:
        if self._shown:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[at]}"),
            )
            self._progress = Progress(
                *columns, TimeElapsedColumn(), console=console(sys.stderr), transient=True
            )
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begins(self, scenario: Scenario, number: int, total: int) -> Callable[[float, float], None]:
        """A run begins."""
        if self._progress is None:
            return lambda share, time: None
        name = clean(f"{scenario.variant}, seed {scenario.seed} ({number + 1}/{total})")
        progress, task = self._progress, self._progress.add_task(name, total=1.0, at="")
        self._task = task

        def tell(share: float, time: float) -> None:
            at = f"{seconds(time)} simulated"
            progress.update(task, completed=share if share == share else None, at=at)

        return tell

    def ends(self, run: Run, again: bool) -> None:
        """A run is finished."""
        self.again += again
        if self._progress is not None:
            self._progress.update(self._task, completed=1.0, at="used again" if again else "done")


def print_outcome(outcome: Outcome, again: int) -> None:
    """The verdict, a table of the runs, and where they lie."""
    from scenarios.report.gather import gather
    from scenarios.report.simulated import counts
    from scenarios.report.verdict import judge

    findings = gather(outcome.runs)
    verdict = judge(findings)
    print_summary(findings)
    say(f"\n{verdict.headline}")
    if verdict.rest:
        say(verdict.rest)
    for said in counts(findings):
        say(said)
    if outcome.root is not None:
        used = f" ({plural(again, 'finished run')} used again; --force runs anew)" if again else ""
        report = outcome.root / "report.html"
        say(f"{report if report.exists() else outcome.root}{used}")


@dataclass(frozen=True)
class _Shown:
    """A column of the table at the end of a run; those of the highest rank are left out first."""

    title: str
    key: str
    write: Callable[[float | None], str]
    rank: int


SUMMARY = (
    _Shown("to target", "time_to_target_s", lambda value: seconds(value, "never"), 0),
    _Shown("loss", "final_loss", number, 4),
    _Shown("accuracy", "final_accuracy", percent, 5),
    _Shown("samples/s", "samples_per_s", number, 2),
    _Shown("wasted", "samples_wasted", number, 11),
    _Shown("step", "step_time_s.mean", seconds, 3),
    _Shown("compute", "compute_fraction", percent, 6),
    _Shown("comm.", "exposed_communication_fraction", percent, 7),
    _Shown("waiting", "waiting_fraction", percent, 1),
    _Shown("idle", "idle_fraction", percent, 12),
    _Shown("staleness", "staleness_mean", number, 8),
    _Shown("sent", "bytes_sent", nbytes, 10),
    _Shown("simulated", "simulated_s", seconds, 9),
)


_ONLY_IF_ANY = ("samples_wasted", "idle_fraction")


def print_summary(findings: Findings) -> None:
    """The table at the end of a run: a row a variant, means over its seeds."""
    from scenarios.compare import pick

    runs = findings.runs
    there = {one.key for one in SUMMARY if any(pick(run.summary, one.key) is not None for run in runs)}
    there -= {key for key in _ONLY_IF_ANY if all((pick(r.summary, key) or 0) < 1e-3 for r in runs)}
    if findings.target:
        there.add("time_to_target_s")
    shown = [one for one in SUMMARY if one.key in there]
    rows = [
        [group.variant, str(len(group.runs)), *(_mean(group, one) for one in shown)]
        for group in findings.groups
    ]
    ranked = sorted(range(len(shown)), key=lambda place: -shown[place].rank)
    head = ["variant", "seeds", *(one.title for one in shown)]
    print_table(head, rows, spare=[place + 2 for place in ranked])


def _mean(group: Group, one: _Shown) -> str:
    from scenarios.compare import pick

    mean = group.mean(one.key)
    reached = sum(pick(run.summary, one.key) is not None for run in group.runs)
    return f"{reached} of {len(group.runs)}" if mean is None and reached else one.write(mean)


def comparison_table(compared: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a comparison."""
    base = compared["baseline"]
    head = ["metric", "variant", "mean", "95 % interval", f"ratio to {base}", "95 % interval", "difference",
            "95 % interval", "seeds"]  # fmt: skip
    rows, metric = [], None
    for row in compared["rows"]:
        first = row["metric"] if row["metric"] != metric else ""
        metric = row["metric"]
        rows.append(
            [first, row["variant"], *_cells(row), f"{row['seeds']}{'' if row['paired'] else ' unpaired'}"]
        )
    return head, rows


def _cells(row: Mapping[str, Any]) -> list[str]:
    missing = f"never ({row['never']} of {row['seeds']})" if row.get("never") else "-"
    return [
        number(row["mean"], missing), _between(number, [row["ci_low"], row["ci_high"]]),
        "-" if row["ratio"] is None else factor(row["ratio"]), _between(factor, row["ratio_ci"]),
        number(row["difference"]), _between(number, row["difference_ci"]),
    ]  # fmt: skip


def _between(write: Callable[[float], str], ends: Sequence[float | None] | None) -> str:
    if ends is None or ends[0] is None or ends[1] is None:
        return "-"
    return f"{write(ends[0])} .. {write(ends[1])}"
