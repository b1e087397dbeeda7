"""`report.html`: what a study found, in one file that opens anywhere.

The verdict comes first, then what was counted, then learning, break-down, timeline, waiting, links, and at
the end what was simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.files import write_text
from scenarios.store import Run


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
