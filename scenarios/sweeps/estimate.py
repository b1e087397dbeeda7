"""What a sweep would do, and about how long it would take: nothing is written."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios import store
from scenarios.sweeps.plan import Entry, Plan, by_point, inputs_of, planned
from scenarios.sweeps.sweep import SweepOrder, default_out
from scenarios.words import plural, seconds

if TYPE_CHECKING:
    from scenarios.loading import Study

#: Seconds that a run on trial may take; the rest is told from how far it has come.
TRIAL_S = 2.0

#: Runs on trial: the first, the last, and some between them.
TRIALS = 3


@dataclass(frozen=True)
class Listed:
    """The runs of a sweep before they are made.

    Attributes:
        plan: the sweep.
        root: where it would write.
        finished: numbers of the runs that would be used again.
        run_s: seconds that a run takes in this process, from a few on trial; NaN if these failed.
        jobs: processes.
    """

    plan: Plan
    root: Path
    finished: frozenset[int]
    run_s: float
    jobs: int

    @property
    def several(self) -> bool:
        """Whether there are several variants."""
        return len({entry.variant for entry in self.plan.entries}) > 1

    def state(self, entry: Entry) -> str:
        """What would become of a run."""
        if entry.resolved is None:
            return f"skipped: {entry.error}"
        return "finished" if entry.number in self.finished else ""

    @property
    def to_run(self) -> int:
        """Runs that would be made."""
        return sum(entry.resolved is not None for entry in self.plan.entries) - len(self.finished)

    @property
    def estimate_s(self) -> float:
        """About how long they would take."""
        return self.to_run * self.run_s / self.jobs

    exit_code = 0

    @property
    def sentence(self) -> str:
        """In words."""
        again = f", {len(self.finished):,} of them finished already" if self.finished else ""
        said = f"{plural(len(self.plan.entries), 'run')}{again}."
        if not self.to_run:
            return said
        if math.isnan(self.run_s):
            return f"{said} A run on trial failed; `paceline sweep` notes what failed and goes on."
        each = f"A run takes about {seconds(self.run_s)} (tried here)"
        whole = f"{plural(self.to_run, 'run')}, {self.jobs:,} at a time,"
        return f"{said} {each}: {whole} about {seconds(self.estimate_s)}."

    @property
    def as_json(self) -> dict[str, Any]:
        """As `sweep --dry-run --json` prints it."""
        runs = [
            {
                "run_dir": entry.place, "variant": entry.variant, "seed": entry.seed, **entry.values,
                "state": self.state(entry) or "to run",
            }
            for entry in self.plan.entries
        ]  # fmt: skip
        known = not math.isnan(self.run_s)
        return {
            "runs": runs, "to_run": self.to_run, "jobs": self.jobs,
            "run_s": self.run_s if known else None, "estimate_s": self.estimate_s if known else None,
        }  # fmt: skip


def listed(study: Study, order: SweepOrder) -> Listed:
    """List the runs of a file's sweep, and try a few of them for some seconds.

    Raises:
        InputErrors: the sweep is wrong.
    """
    from joblib import cpu_count

    plan = planned(study, most=max(order.most, 10**9), tell=order.listener.checked)
    root = order.out or default_out(plan)
    record = order.record or plan.sweep.record
    finished = frozenset() if order.force else frozenset(_finished(plan, root, record))
    waiting = [e for e in plan.entries if e.resolved is not None and e.number not in finished]
    return Listed(plan, root, finished, _mean_run(study, waiting, order), order.jobs or cpu_count())


def _mean_run(study: Study, waiting: Sequence[Entry], order: SweepOrder) -> float:
    """Seconds that a run takes, from a few of them."""
    chosen = _spread(waiting)
    if not chosen:
        return 0.0
    tried = [_trial(study, entry, order) for entry in [*chosen[:1], *chosen]]
    known = [one for one in tried[1:] if not math.isnan(one)]  # the first one also loads compiled code
    return sum(known) / len(known) if known else math.nan


def _finished(plan: Plan, root: Path, record: str) -> list[int]:
    found = []
    for entries in by_point(plan.entries):
        inputs = inputs_of(entries[0].document)
        found += [
            entry.number for entry in entries
            if store.is_finished(root / entry.place, entry.document, record, inputs)
        ]  # fmt: skip
    return found


def _spread(waiting: Sequence[Entry]) -> list[Entry]:
    if len(waiting) <= TRIALS:
        return list(waiting)
    return [waiting[round(part * (len(waiting) - 1) / (TRIALS - 1))] for part in range(TRIALS)]


class _Enough(Exception):
    """A trial has run long enough."""


def _trial(study: Study, entry: Entry, order: SweepOrder) -> float:
    """Seconds that a run takes: measured, or told from the share done when time is up; NaN if it fails."""
    from scenarios.build import simulate
    from scenarios.sweeps.work import scenario_of

    scenario = scenario_of(entry.document, study.file, study.allow_code)
    began, share = time.perf_counter(), 0.0

    def tell(done: float, _: float) -> None:
        nonlocal share
        share = done
        if time.perf_counter() - began > TRIAL_S and done > 0:
            raise _Enough

    try:
        simulate(scenario, engine=order.engine, record="summary", progress=tell)
    except _Enough:
        return (time.perf_counter() - began) / share
    except Exception:
        return math.nan
    return time.perf_counter() - began
