"""The input pipeline: closed forms, and one digest in both engines."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.input_pipeline import InputSpec, Loading
from simulator.job import Stop
from simulator.placement import Workers
from simulator.result import SPAN_KINDS
from simulator.run import run
from simulator.strategies import LocalSGD, ParameterServer, SyncSGD

COMPUTE, STEPS = 0.1, 20


def alone(make_job, load: float, prefetch: int, n: int = 1, **fields):
    """Workers that never meet, each gradient 0.1 s, each batch `load` seconds."""
    job = make_job(
        LocalSGD(h=STEPS + 1),
        n=n,
        seconds=COMPUTE,
        stragglers=(),
        optimizer_seconds=np.zeros(n),
        stop=Stop(steps=STEPS),
        input=Loading(np.full(n, load), prefetch),
        **fields,
    )
    return run(job, "process"), run(job, "cohort")


@pytest.mark.parametrize("prefetch", [1, 2, 5])
@pytest.mark.parametrize("load", [0.02, 0.1, 0.25])
def test_a_step_takes_the_longer_of_computing_and_loading(make_job, load, prefetch):
    """The first batch is waited for; then the slower one paces: load + (steps - 1) max + compute."""
    for result in alone(make_job, load, prefetch):
        summary = result.summary
        expected = load + (STEPS - 1) * max(COMPUTE, load) + COMPUTE
        assert summary["simulated_s"] == pytest.approx(expected, rel=1e-12)
        assert summary["step_time_s"]["mean"] == pytest.approx(max(COMPUTE, load), rel=1e-9)
        exposed = load + (STEPS - 1) * max(load - COMPUTE, 0.0)
        assert summary["input_fraction"] == pytest.approx(exposed / expected, rel=1e-9)
        assert summary["compute_fraction"] == pytest.approx(STEPS * COMPUTE / expected, rel=1e-9)


def test_without_a_queue_loading_and_computing_take_turns(make_job):
    for result in alone(make_job, 0.03, 0):
        assert result.summary["simulated_s"] == pytest.approx(STEPS * (COMPUTE + 0.03), rel=1e-12)


def test_a_queue_makes_up_for_one_slow_step(make_job):
    """A pause of 0.5 s fills the queue: the next `prefetch` batches are there at once."""
    loader = Loading(np.array([0.1]), 3).of_worker(0)
    assert loader.take(0.0) == pytest.approx(0.1)
    # From 0.1 s on a batch every 0.1 s until three are there, at 0.4 s.
    assert [loader.take(1.0) for _ in range(3)] == [1.0, 1.0, 1.0]
    assert loader.take(1.0) == pytest.approx(1.1)
    assert loader.take(1.0) == pytest.approx(1.2)


def test_spans_say_what_was_exposed(make_job):
    result = alone(make_job, 0.25, 2)[0]
    spans = result.spans
    assert spans is not None
    inputs = spans["kind"].codes == SPAN_KINDS.index("input")
    assert inputs.sum() == STEPS
    lengths = (spans["end_s"] - spans["start_s"])[inputs]
    np.testing.assert_allclose(lengths, [0.25, *[0.15] * (STEPS - 1)], rtol=1e-9)


SPEC = {
    "bytes_per_sample": "100 kB",
    "storage": {"bandwidth": "1 GB/s", "per": "cluster"},
    "cpu_seconds_per_sample": "2 ms",
    "workers": 4,
}


def on_hosts(*hosts: int) -> Workers:
    alike = Workers.alike(len(hosts))
    return Workers(alike.node, np.array(hosts), alike.device, alike.kind, alike.profile, alike.host_names)


@pytest.mark.parametrize(
    ("storage", "expected"),
    [  # 32 samples of 0.1 ms at 1 GB/s, by the readers of each storage; or of 2 ms by four processes
        ({"per": "cluster"}, [32 * max(6 * 1e-4, 5e-4)] * 6),
        ({"per": "host"}, [32 * 5e-4] * 6),
        ({"per": "host", "bandwidth": "100 MB/s"}, [32 * 3e-3] * 3 + [32 * 2e-3] * 2 + [32 * 1e-3]),
        ({"per": "worker", "bandwidth": "100 MB/s"}, [32 * 1e-3] * 6),
        ({"per": "worker", "latency": "8 ms"}, [32 * (8e-3 + 2e-3) / 4] * 6),
    ],
)
def test_load_times(storage, expected):
    spec = InputSpec.model_validate(SPEC | {"storage": SPEC["storage"] | storage})
    np.testing.assert_allclose(spec.loading(32, on_hosts(0, 0, 0, 1, 1, 2)).seconds, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 4, 16])
def test_a_storage_shared_by_n_hosts_gives_its_bandwidth(make_job, n):
    """Bound by storage, all workers together read exactly its bandwidth."""
    spec = InputSpec.model_validate(
        {"bytes_per_sample": "1 MB", "storage": {"bandwidth": "100 MB/s", "per": "cluster"}}
    )
    loading = spec.loading(32, Workers.alike(n))
    for result in alone(make_job, float(loading.seconds[0]), 2, n):
        assert 32 / result.summary["step_time_s"]["mean"] * n == pytest.approx(100.0, rel=1e-9)


LOGNORMAL = {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.5}}


@pytest.mark.parametrize("stop", [Stop(steps=20), Stop(time=1.7), Stop(samples=32 * 41)], ids=repr)
@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("strategy", [SyncSGD(), SyncSGD(backup=1, late="finish"), LocalSGD(h=3)], ids=repr)
def test_both_engines_agree(make_job, strategy, prefetch, stop):
    loading = Loading(np.linspace(0.05, 0.13, 5), prefetch)
    job = make_job(strategy, n=5, stragglers=(LOGNORMAL,), stop=stop, input=loading)
    process, cohort = run(job, "process").summary, run(job, "cohort").summary
    assert process["digest"] == cohort["digest"]
    assert process["input_fraction"] > 0
    assert process["input_fraction"] == pytest.approx(cohort["input_fraction"], rel=1e-12)


@pytest.mark.parametrize("strategy", [ParameterServer(), ParameterServer(bound=0)], ids=repr)
def test_methods_that_wait_for_a_server_load_too(make_job, strategy):
    slow = run(make_job(strategy, input=Loading(np.full(4, 0.5), 2))).summary
    fast = run(make_job(strategy, input=Loading(np.full(4, 1e-6), 2))).summary
    none = run(make_job(strategy)).summary
    assert slow["input_fraction"] > 0.3
    assert slow["simulated_s"] >= 20 * 0.5 + 0.1
    assert fast["simulated_s"] == pytest.approx(none["simulated_s"], rel=1e-3)
