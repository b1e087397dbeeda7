"""Runs on this machine: one after another in this process, or by joblib in processes beside it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace

from scenarios.sweeps.work import Done, Task, work

DIED = "its process died: killed by the system, perhaps for want of memory"


def results(tasks: Iterable[Task], jobs: int | None = None, address: str | None = None) -> Iterator[Done]:
    """What becomes of the tasks, as they end.

    Args:
        tasks: the runs; taken as they are needed.
        jobs: processes; by default one for each processor.
        address: of no use here.
    """
    from joblib import cpu_count

    count = jobs or cpu_count()
    own = (replace(task, parent=os.getpid()) for task in tasks)
    return map(work, own) if count == 1 else _beside(own, count)


def _beside(tasks: Iterator[Task], jobs: int) -> Iterator[Done]:
    """In worker processes. When one dies, all are lost; those under way are tried again one by one."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    # A worker that has grown, by loading torch for example, is replaced by a fresh one: nothing to warn of.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    given: dict[int, Task] = {}

    def noted() -> Iterator[Task]:
        for task in tasks:
            given[task.number] = task
            yield task

    while True:
        try:
            for done in _parallel(noted(), jobs, f"2*{jobs}"):
                del given[done.number]
                yield done
            return
        except BrokenProcessPool:
            suspects = [*given.values()]
            given.clear()
        for task in suspects:
            yield _alone(task)


def _alone(task: Task) -> Done:
    """A run that may bring its process down."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        return next(_parallel(iter([task]), 2, "1"))
    except BrokenProcessPool:
        return Done(task.number, error=DIED, ours=True)


def _parallel(tasks: Iterator[Task], jobs: int, ahead: str) -> Iterator[Done]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        pool = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=ahead)
        found: Iterator[Done] = pool(delayed(work)(task) for task in tasks)
    return found
