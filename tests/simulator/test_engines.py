"""Law 1: a process per worker and a cohort give one digest, however the run ends and whatever is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.errors import CohortError
from simulator.job import Stop
from simulator.run import run
from simulator.strategies import DiLoCo, LocalSGD, ParameterServer, SlowMo, SyncSGD

BURSTS = {
    "per": "burst",
    "every": "500 ms",
    "duration": "100 ms",
    "factor": {"kind": "constant", "value": 3.0},
}
SLOW = {"where": {"worker": 2}, "per": "run", "factor": {"kind": "constant", "value": 3.0}}
LOGNORMAL = {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}}

SYNCHRONOUS = [
    SyncSGD(),
    SyncSGD(bucket_bytes="1 TB"),
    SyncSGD(bucket_bytes="1 MB"),
    SyncSGD(backup=1, late="finish"),
    SyncSGD(collective="halving_doubling"),
    SyncSGD(collective="hierarchical"),
    LocalSGD(h=3),
    LocalSGD(h=4, start_step=6),
    SlowMo(h=4),
    DiLoCo(h=3),
]
STOPS = [
    Stop(steps=20),
    Stop(time=1.2345),
    Stop(steps=7, time=100.0),
    Stop(samples=20 * 32 + 1),
    Stop(samples=5 * 32, steps=50),
]


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Equal summaries, sums of times up to rounding."""
    for key, value in first.items():
        other = second[key]
        if isinstance(value, dict):
            assert value.keys() == other.keys()
            assert same(value, other)
        elif isinstance(value, float):
            assert value == pytest.approx(other, rel=1e-12, abs=1e-14), key
        else:
            assert value == other, key
    return True


@pytest.mark.parametrize("fidelity", ["flows", "bundles", "closed_form"])
@pytest.mark.parametrize("strategy", SYNCHRONOUS, ids=repr)
def test_process_and_cohort_agree(make_job, strategy, fidelity):
    job = make_job(strategy, n=5, stragglers=(LOGNORMAL, SLOW, BURSTS), fidelity=fidelity)
    process, cohort = run(job, "process"), run(job, "auto")
    assert cohort.facts["engine"] == "cohort"
    assert same(process.summary, cohort.summary)
    assert process.steps is not None
    assert cohort.steps is not None
    for column, values in process.steps.items():
        np.testing.assert_allclose(cohort.steps[column], values, rtol=1e-12, atol=1e-14, err_msg=column)


@pytest.mark.parametrize("stop", STOPS, ids=repr)
@pytest.mark.parametrize("strategy", SYNCHRONOUS, ids=repr)
def test_both_engines_end_alike(make_job, strategy, stop):
    job = make_job(strategy, n=4, stragglers=(LOGNORMAL, SLOW), stop=stop)
    process, cohort = run(job, "process"), run(job, "cohort")
    assert same(process.summary, cohort.summary)
    if stop.time is not None:
        assert process.summary["simulated_s"] <= stop.time


def test_auto_takes_the_cohort_where_it_can(make_job):
    assert run(make_job(SyncSGD())).facts["engine"] == "cohort"
    assert run(make_job(ParameterServer())).facts["engine"] == "process"
    assert run(make_job(LocalSGD(h_by_class={"cpu": 2}))).facts["engine"] == "process"


@pytest.mark.parametrize("strategy", [ParameterServer(), LocalSGD(h_by_class={"cpu": 2})], ids=repr)
def test_a_cohort_names_the_verb_it_cannot_run(make_job, strategy):
    with pytest.raises(CohortError, match=r"w\.(pull|kind): .*--engine process"):
        run(make_job(strategy), "cohort")


@pytest.mark.parametrize("strategy", [SyncSGD(), LocalSGD(h=2), ParameterServer(bound=1)], ids=repr)
def test_the_digest_does_not_depend_on_what_is_recorded(make_job, strategy):
    results = [run(make_job(strategy, record=level)) for level in ("summary", "steps", "all")]
    assert len({r.summary["digest"] for r in results}) == 1
    assert [r.steps is None for r in results] == [True, False, False]
    assert [r.spans is None for r in results] == [True, True, False]


def test_another_seed_is_another_run(make_job):
    digests = {run(make_job(SyncSGD(), seed=seed)).summary["digest"] for seed in range(5)}
    assert len(digests) == 5


@pytest.mark.parametrize("stragglers", [(), (LOGNORMAL,)], ids=["ties everywhere", "few ties"])
@pytest.mark.parametrize(
    "strategy",
    [
        *SYNCHRONOUS,
        ParameterServer(),
        ParameterServer(bound=0),
        ParameterServer(bound=2),
        ParameterServer(discipline="processor_sharing"),
        ParameterServer(discipline="round_robin"),
        ParameterServer(discipline="lock_free"),
        ParameterServer(n_sync=3),
    ],
    ids=repr,
)
def test_the_order_of_ties_does_not_matter(make_job, shuffled_ties, strategy, stragglers):
    job = make_job(strategy, n=4, stragglers=stragglers, stop=Stop(steps=8))
    plain = run(job, "process").summary
    for seed in range(3):
        assert same(plain, run(job, "process", clock=shuffled_ties(seed)).summary)
