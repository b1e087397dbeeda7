"""Runs on a Ray cluster that is already there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from scenarios.sweeps.work import Done, Task, work
from simulator.errors import InputError


def results(tasks: Iterable[Task], jobs: int | None = None, address: str | None = None) -> Iterator[Done]:
    """What becomes of the tasks, as they end.

    Args:
        tasks: the runs; taken as they are needed.
        jobs: runs at one time; by default the whole cluster.
        address: of the cluster, or `auto`; by default what RAY_ADDRESS says, else a cluster on this machine.

    Raises:
        InputError: Ray is not installed, or no cluster is there.
    """
    ray = _ray()
    begun = _begin(ray, address, jobs)
    try:
        ahead = jobs or 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(num_cpus=1, max_retries=0)(work)
        waiting = iter(tasks)
        numbers = {remote.remote(task): task.number for task in islice(waiting, ahead)}
        while numbers:
            (first,), _ = ray.wait(list(numbers), num_returns=1)
            yield _done(ray, first, numbers.pop(first))
            numbers |= {remote.remote(task): task.number for task in islice(waiting, 1)}
    finally:
        if begun:
            ray.shutdown()


def _done(ray: Any, reference: Any, number: int) -> Done:
    try:
        done: Done = ray.get(reference)
    except ray.exceptions.RayError as error:
        return Done(number, error=f"{type(error).__name__}: {error}", ours=True)
    return done


def _begin(ray: Any, address: str | None, jobs: int | None) -> bool:
    """Connect to the cluster, unless this process is connected already."""
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a simulator reports to nobody
    known = address or os.environ.get("RAY_ADDRESS")
    own = {} if known else {"num_cpus": jobs, "include_dashboard": False}
    try:
        ray.init(address=known, log_to_driver=False, logging_level="ERROR", **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        hint = "start one with `ray start --head`"
        raise InputError("the address of a Ray cluster", str(error), "--address", hint) from error
    return True


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        hint = "pip install 'paceline[ray]'"
        raise InputError("Ray to be installed", str(error), "--backend", hint) from error
    return ray
