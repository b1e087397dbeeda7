"""Runs on a Dask cluster that is already there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from scenarios.sweeps.work import Done, Task, work
from simulator.errors import InputError

#: Runs handed out at least, to a cluster that has no workers yet.
LEAST_AHEAD = 32


def results(tasks: Iterable[Task], jobs: int | None = None, address: str | None = None) -> Iterator[Done]:
    """What becomes of the tasks, as they end.

    Args:
        tasks: the runs; taken as they are needed.
        jobs: runs at one time; by default the whole cluster.
        address: of the scheduler; by default what Dask's own settings say, else a cluster on this machine.

    Raises:
        InputError: Dask is not installed, or no scheduler is there.
    """
    as_completed = _distributed().as_completed
    with _client(address, jobs) as client:
        ahead = jobs or max(2 * sum(client.ncores().values()), LEAST_AHEAD)
        waiting = iter(tasks)
        numbers = {future: task.number for task, future in _given(client, islice(waiting, ahead))}
        under_way = as_completed(list(numbers))
        for future in under_way:
            yield _done(future, numbers.pop(future))
            for task, new in _given(client, islice(waiting, 1)):
                numbers[new] = task.number
                under_way.add(new)


def _given(client: Any, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    for task in tasks:
        yield task, client.submit(work, task, pure=False)


def _done(future: Any, number: int) -> Done:
    error = future.exception()
    if error is None:
        done: Done = future.result()
        return done
    return Done(number, error=f"{type(error).__name__}: {error}", ours=True)


def _client(address: str | None, jobs: int | None) -> Any:
    distributed = _distributed()
    try:
        if address is not None:
            return distributed.Client(address)
        local = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None}
        return distributed.Client(
            **{key: value for key, value in local.items() if value is not None or key != "n_workers"}
        )
    except (OSError, ValueError, TimeoutError) as error:
        hint = "start one with `dask scheduler`"
        raise InputError("the address of a Dask scheduler", str(error), "--address", hint) from error


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        hint = "pip install 'paceline[dask]'"
        raise InputError("Dask to be installed", str(error), "--backend", hint) from error
    return distributed
