"""`network.collective.library`, choice by size, and groups of hosts in scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.build import job_of
from scenarios.check import resolve
from scenarios.loading import load
from simulator.collectives import closed_forms
from simulator.errors import InputError
from simulator.run import run
from simulator.streams import Draws

SCENARIO = """
cluster:
  topology: {kind: star, hosts: 8, link: {bandwidth: 8 Gbit/s, latency: 5 us},
             host: {kind: cpu_only, devices: {count: 1, class: cpu, profile: {kind: constant, step: 1 ms}}}}
workload: {model: digits_mlp, batch: 8, dtype: fp32}
training: {strategy: {kind: sync_sgd, bucket_bytes: 1 GB}}
network: {collective: COLLECTIVE}
stop: {steps: 3}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Any:
    def of(collective: str, *sets: str) -> Any:
        file = tmp_path / "s.yaml"
        file.write_text(SCENARIO.replace("COLLECTIVE", collective))
        return resolve(load(file, sets)).scenarios[0]

    return of


def test_a_library_names_the_algorithms_that_are_not_named(scenario):
    found = scenario("{library: gloo, broadcast: binomial}").network.collective
    assert (found.all_reduce, found.reduce_scatter, found.reduce) == ("gloo_ring",) * 3
    assert (found.broadcast, found.barrier) == ("binomial", "gloo_dissemination")
    assert scenario("{library: nccl}").network.collective.all_reduce == "nccl_auto"
    assert scenario("{library: nccl, all_reduce: in_switch}").network.collective.all_reduce == "in_switch"
    assert scenario("{}").network.collective.all_reduce == "ring"


def test_a_resolved_library_reads_back(scenario):
    first = scenario("{library: gloo}").network.collective
    again = type(first).model_validate(first.model_dump(mode="json"))
    assert again == first


@pytest.mark.parametrize(
    "collective",
    [
        "{library: gloo}",
        "{library: nccl}",
        "{all_reduce: auto}",
        "{all_reduce: in_switch}",
        "{all_reduce: hierarchical_3, hosts_per_group: 4}",
    ],
)
def test_both_engines_have_one_digest(scenario, collective):
    digests = set()
    for engine in ("cohort", "process"):
        for jitter in ("[]", "[{where: all, per: step, factor: {kind: lognormal, mean: 1, sigma: 0.3}}]"):
            result = run(job_of(scenario(collective, f"stragglers={jitter}")), engine)
            assert result.facts["engine"] == engine
            digests.add((jitter, result.summary["digest"]))
    assert len(digests) == 2


def test_a_step_takes_the_closed_form(scenario):
    job = job_of(scenario("{library: gloo}"))
    nbytes = job.maths(Draws(1)).initial().nbytes
    want = 1e-3 + closed_forms.gloo_all_reduce(8, nbytes, 1e9, 10e-6)
    assert run(job).summary["simulated_s"] == pytest.approx(3 * want, rel=1e-9)


def test_groups_of_hosts_are_for_three_levels(scenario):
    with pytest.raises(InputError, match="hierarchical_3"):
        scenario("{hosts_per_group: 4}")
