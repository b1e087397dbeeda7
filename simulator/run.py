"""Run a job: one variant, one seed; as one process per worker, or as a cohort."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from simulator.clock import Clock
from simulator.cohort import Cohort
from simulator.engine import Engine, Progress
from simulator.errors import CohortError, InputError
from simulator.job import Job
from simulator.process import Proc
from simulator.result import Result
from simulator.server import Server
from simulator.summary import result_of
from simulator.worker import Worker

if TYPE_CHECKING:
    from simulator.maths.resumable import Checkpoint

EngineKind = Literal["auto", "cohort", "process"]


def run(
    job: Job,
    engine: EngineKind = "auto",
    progress: Progress | None = None,
    clock: Clock | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Simulate a job.

    Args:
        job: what to run.
        engine: `process` for a process per worker, `cohort` for one process with a vector of clocks
            (synchronous methods), `auto` for a cohort where the method allows it. The result is the same.
        progress: told how far the run is, about ten times a second.
        clock: tests give one that shuffles ties.
        checkpoint: where a run of real maths is kept from time to time, and taken up from.

    Raises:
        InputError: the checkpoint is of another run, or the method branches on numbers.
        CohortError: `cohort` was asked for and the method uses a verb that a cohort has not.
        StuckError: every worker waits for another.
        VerbError: the method used a verb wrongly.
    """
    if engine == "auto":
        try:
            return run(job, "cohort", progress, clock, checkpoint)
        except CohortError:
            return run(job, "process", progress, clock, checkpoint)
    began = perf_counter()
    keeping: AbstractContextManager[Any] = nullcontext()
    if checkpoint is not None:
        job, keeping = _kept(job, engine, checkpoint)
    with keeping:
        running = Engine(job, clock)
        start_cohort(running) if engine == "cohort" else start_workers(running)
        cut = running.run(progress, checkpoint.after_event if checkpoint else None)
        result = result_of(running, cut)
    result.facts |= {"engine": engine, "engine_s": perf_counter() - began}
    return result


def _kept(job: Job, engine: str, checkpoint: Checkpoint) -> tuple[Job, AbstractContextManager[Any]]:
    """The job with its maths on a tape, and the context in which values are noted on it."""
    from simulator.maths.tape import taping

    if job.strategy.needs_math:
        raise InputError("a method that does not branch on numbers", "a checkpoint", "training.strategy")
    checkpoint.begin(engine)
    maths: Any = job.maths
    return replace(job, maths=lambda draws: checkpoint.maths(maths(draws))), taping(checkpoint.tape)


def start_workers(engine: Engine) -> None:
    """Put a process per worker on the clock, and the server's if the method has one."""
    strategy = engine.job.strategy
    if strategy.has_server:
        assert engine.job.server_node is not None, "a method with a server needs a place for it"
        engine.server = Server(engine, engine.job.server_node, getattr(strategy, "discipline", "fcfs"))
        engine.clock.process(strategy.server(engine.server))
    engine.workers = [Worker(engine, rank) for rank in range(engine.size)]
    for worker in engine.workers:
        engine.clock.process(_life(engine, worker))


def _life(engine: Engine, worker: Worker) -> Proc[None]:
    yield from engine.job.strategy.worker(worker)
    worker.use_steps()
    if worker.line.t > engine.clock.now:
        yield engine.clock.at(worker.line.t)
    worker.finished = True
    engine.worker_finished()


def start_cohort(engine: Engine) -> None:
    """Put all workers on the clock as one process."""
    if engine.job.strategy.has_server:
        raise CohortError("w.pull", "a server answers workers one by one")
    engine.cohort = Cohort(engine)
    stop, counted = engine.job.stop, engine.observer and engine.job.evaluate_every is not None
    engine.recorder.ahead = stop.samples is None and stop.target is None and not counted
    engine.clock.process(_cohort_life(engine, engine.cohort))


def _cohort_life(engine: Engine, cohort: Cohort) -> Proc[None]:
    worker: Any = cohort
    yield from engine.job.strategy.worker(worker)
    cohort.use_steps()
    yield from cohort.finish()
    engine.worker_finished(engine.size)
