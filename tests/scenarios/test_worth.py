"""Money, energy and utilisation of a run, by hand from the device's profile."""

from __future__ import annotations

import pytest

from calibration import operations, profiles
from scenarios import load

WORKERS, STEPS, BATCH = 16, 10, 32


@pytest.fixture(scope="module")
def run():
    """Ten steps on sixteen P100, one of them three times slower: most of them wait most of the time."""
    slow = "stragglers=[{where: {worker: 3}, per: run, factor: {kind: constant, value: 3.0}}]"
    p100 = "cluster.topology.host.devices.profile=p100_sxm2"
    return load("smallest", [p100, slow, f"stop.steps={STEPS}"]).run()


@pytest.fixture(scope="module")
def p100():
    found = profiles.load("p100_sxm2")
    assert found.price
    assert found.power
    return found


def test_cost_is_the_price_of_all_devices_for_the_whole_run(run, p100):
    hours = run.summary["simulated_s"] / 3600
    assert run.summary["cost_usd"] == pytest.approx(WORKERS * p100.price.usd_per_hour * hours, rel=1e-12)


def test_energy_is_busy_while_computing_and_idle_else(run, p100):
    joules = 0.0
    for share in run.workers["compute_fraction"]:
        watts = share * p100.power.busy + (1 - share) * p100.power.idle
        joules += watts * run.summary["simulated_s"]
    assert run.summary["energy_kwh"] == pytest.approx(joules / 3.6e6, rel=1e-12)
    assert run.summary["compute_fraction"] < 0.6  # else idle watts would hardly count


def test_mfu_is_the_models_flop_over_the_devices_peak(run, p100):
    flop = operations.load("resnet50").flop_per_sample * BATCH * WORKERS * STEPS
    most = WORKERS * p100.peak["fp32"] * run.summary["simulated_s"]
    assert run.summary["mfu"] == pytest.approx(flop / most, rel=1e-12)
    assert run.summary["mfu_peak_dtype"] == "fp32"


def test_fractions_of_the_run_are_means_over_its_workers(run):
    """Worker 3 computes all the time, the others do not: no single worker's share is the run's."""
    shares = run.workers["compute_fraction"]
    assert run.summary["compute_fraction"] == pytest.approx(shares.mean(), rel=1e-12)
    assert shares.max() > 2 * shares.min()
