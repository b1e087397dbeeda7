"""A run of real maths that is stopped anywhere and taken up again is the undisturbed run, to the bit."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from simulator.errors import InputError
from simulator.job import Stop
from simulator.maths.resumable import Checkpoint
from simulator.maths.torch_maths import TorchMaths
from simulator.optimizers import Adam, Momentum
from simulator.problems import DigitsMlp
from simulator.run import run
from simulator.strategies import ADPSGD, DPSGD, LocalSGD, ParameterServer, SyncSGD
from topologies.gossip import Gossip

RING: Any = TypeAdapter(Gossip).validate_python({"graph": "ring"})
CASES = [
    (SyncSGD(bucket_bytes="1 MB"), "process"),
    (SyncSGD(bucket_bytes="1 MB"), "cohort"),
    (SyncSGD(backup=1, late="finish"), "process"),
    (LocalSGD(h=3), "cohort"),
    (LocalSGD(h=3), "process"),
    (ParameterServer(), "process"),
    (DPSGD(order="mix_then_step", delay=1), "process"),
    (ADPSGD(), "process"),
]


class Killed(Exception):
    """The end of a run that nobody expected."""


class Dying(Checkpoint):
    """Saves at given numbers of events, and kills the run after the last of them."""

    saves: tuple[int, ...] = ()
    dies: int = -1

    def after_event(self, events: int) -> None:
        super().after_event(events)
        if events in self.saves and not self.tape.skipping:
            self.save(events)
        if events == self.dies:
            raise Killed


def dying(path: Path, saves: tuple[int, ...], dies: int) -> Dying:
    checkpoint = Dying(path, "job", 1e9)
    checkpoint.saves, checkpoint.dies = saves, dies
    return checkpoint


def job_of(make_job: Any, strategy: Any, optimizer: Any = Momentum(lr=0.1), **fields: Any) -> Any:  # noqa: B008
    return make_job(
        strategy,
        n=3,
        nbytes=4e6,
        problem=DigitsMlp(hidden=(8,)),
        optimizer=optimizer,
        stop=Stop(steps=12),
        evaluate_every=0.15,
        gossip=RING if strategy.needs_gossip else None,
        **fields,
    )


def same(first: Any, second: Any) -> None:
    assert first.summary == second.summary
    for column in ("time_s", "loss", "accuracy", "steps"):
        assert np.array_equal(first.curve[column], second.curve[column], equal_nan=True)


@pytest.mark.parametrize("dies", [1, 30, 61, 100])
@pytest.mark.parametrize(("strategy", "engine"), CASES, ids=repr)
def test_a_killed_run_goes_on_as_if_nothing_had_been(
    make_job: Any, tmp_path: Path, strategy: Any, engine: Any, dies: int
) -> None:
    job, path = job_of(make_job, strategy), tmp_path / "checkpoint.npz"
    undisturbed = run(job, engine)
    with suppress(Killed):  # some have come to their end before
        run(job, engine, checkpoint=dying(path, (dies // 2, dies), dies))
    assert path.is_file() or dies == 1 or engine == "cohort"
    same(undisturbed, run(job, engine, checkpoint=Checkpoint(path, "job", 1e9)))


def test_what_was_computed_is_not_computed_again(
    make_job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, path = job_of(make_job, LocalSGD(h=4), Adam(lr=0.01)), tmp_path / "checkpoint.npz"
    computed: list[int] = []
    compute = TorchMaths._compute

    def counted(self: TorchMaths, models: Any, samples: Any, workers: Any, draws: Any) -> Any:
        computed.extend(draws)
        return compute(self, models, samples, workers, draws)

    monkeypatch.setattr(TorchMaths, "_compute", counted)
    undisturbed = run(job, "process")
    assert len(computed) == 36
    computed.clear()
    with pytest.raises(Killed):
        run(job, "process", checkpoint=dying(path, (20,), 20))
    before = len(computed)
    assert 3 < before < 36
    same(undisturbed, run(job, "process", checkpoint=Checkpoint(path, "job", 1e9)))
    assert len(computed) == 36


def test_killed_again_and_again(make_job: Any, tmp_path: Path) -> None:
    job, path = job_of(make_job, SyncSGD()), tmp_path / "checkpoint.npz"
    undisturbed = run(job, "process")
    for events in (20, 45, 46, 80):
        with pytest.raises(Killed):
            run(job, "process", checkpoint=dying(path, (events,), events))
    same(undisturbed, run(job, "process", checkpoint=Checkpoint(path, "job", 1e9)))


def test_saves_as_often_as_asked(make_job: Any, tmp_path: Path) -> None:
    job, path = job_of(make_job, SyncSGD()), tmp_path / "checkpoint.npz"
    undisturbed = run(job, "process")
    same(undisturbed, run(job, "process", checkpoint=Checkpoint(path, "job", every=0.0)))
    assert path.is_file()
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.npz"]


def test_wrong_checkpoints_are_told(make_job: Any, tmp_path: Path) -> None:
    job, path = job_of(make_job, SyncSGD()), tmp_path / "checkpoint.npz"
    run(job, "process", checkpoint=Checkpoint(path, "job", every=0.0))
    with pytest.raises(InputError, match="one of another"):
        run(job, "process", checkpoint=Checkpoint(path, "another"))
    same(run(job, "cohort"), run(job, "cohort", checkpoint=Checkpoint(path, "job", 1e9)))
    whole = path.read_bytes()
    for spoilt in (b"", b"nothing of the kind", whole[: len(whole) // 2]):
        path.write_bytes(spoilt)
        with pytest.raises(InputError, match="delete it to begin anew"):
            run(job, "process", checkpoint=Checkpoint(path, "job"))
