"""`report.html`: what a study found, in one file that opens anywhere.

The verdict comes first, then what was counted, then learning, break-down, timeline, waiting, links, and at
the end what was simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.files import write_text
from scenarios.store import Run
from simulator.errors import InputError


def write_report(runs: Sequence[Run], path: Path) -> None:
    """Write the report of one or more finished runs.

    Raises:
        InputError: two runs have one variant and one seed, or a table cannot be read.
    """
    write_text(report(runs), path)


def report(runs: Sequence[Run]) -> str:
    """The report as HTML."""
    from scenarios.report.contents import contents
    from scenarios.report.gather import gather
    from scenarios.report.page import page

    title, body, figures = contents(gather(runs))
    return page(title, body, figures)


def report_directories(directories: Sequence[Path], path: Path) -> tuple[str, int]:
    """Write the report of directories of runs, or of one of a sweep; gives its headline and how many runs.

    Raises:
        InputError: there are no runs, or a sweep among several directories.
    """
    from scenarios.store import collect
    from scenarios.sweeps.sweep import is_sweep

    if any(map(is_sweep, directories)):
        from scenarios.report.sweep import write_sweep_report

        if len(directories) > 1:
            raise InputError("one sweep at a time, or directories of runs", f"{len(directories)}", "DIR")
        return write_sweep_report(directories[0], path)
    from scenarios.report.gather import gather
    from scenarios.report.verdict import judge

    runs = collect(directories)
    write_report(runs, path)
    return judge(gather(runs)).headline, len(runs)
