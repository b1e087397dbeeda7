"""Papers' names of methods, and compression, in scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scenarios.build import job_of
from scenarios.check import resolve
from scenarios.json_schema import json_schema
from scenarios.loading import Study, load
from scenarios.notes import notes
from scenarios.presets import PRESETS
from simulator.errors import InputError
from simulator.strategies import KINDS

SCENARIO = """
cluster:
  topology: {kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us},
             host: {kind: cpu_only, devices: {count: 1, class: CLASS, profile: {kind: constant, step: 1 ms}}}}
workload: {model: digits_mlp, batch: 8, dtype: DTYPE}
training: TRAINING
stop: {steps: 4}
"""


@pytest.fixture
def study(tmp_path: Path) -> Any:
    def of(training: str, *sets: str, device: str = "cpu", dtype: str = "fp32") -> Study:
        text = SCENARIO.replace("TRAINING", training).replace("CLASS", device).replace("DTYPE", dtype)
        file = tmp_path / "s.yaml"
        file.write_text(text)
        return resolve(load(file, sets))

    return of


def training_of(found: Study) -> Any:
    return found.scenarios[0].training


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_method_and_runs(study, name):
    preset = PRESETS[name]
    kind = preset.strategy["kind"]
    assert name not in KINDS
    steps = ["training.strategy.h_by_class={cpu: 1}"] if name == "hetero_local_sgd" else []
    found = study(f"{{strategy: {{kind: {name}}}}}", *steps)
    training = training_of(found)
    assert training.strategy.kind == kind
    assert (training.gossip is not None) == KINDS[kind].needs_gossip == bool(preset.gossip)
    assert found.run(record="summary").runs[0].summary["steps"] == 16


def test_keys_beside_a_preset_come_on_top(study):
    found = training_of(study("{strategy: {kind: easgd_rr, momentum: 0.5, packed: true}}"))
    assert (found.strategy.discipline, found.strategy.momentum, found.strategy.packed) == (
        "round_robin",
        0.5,
        True,
    )
    found = training_of(study("{strategy: {kind: gossip_push}, gossip: {graph: ring}}"))
    assert (found.strategy.direction, found.gossip.graph) == ("push", "ring")
    found = training_of(
        study("{strategy: {kind: sync_sgd}}", "training.strategy={kind: easgd_sync2, every: 3}")
    )
    assert (found.strategy.sync_stage, found.strategy.every) == (2, 3)


def test_a_preset_is_resolved_to_what_it_stands_for(study):
    same = [
        study(f"{{strategy: {text}}}").scenarios[0]
        for text in ("{kind: ssp}", "{kind: parameter_server, bound: 3}")
    ]
    assert same[0] == same[1]


WRONG = {
    "{strategy: {kind: easgd_rr, colour: red}}": "6:39: training.strategy.colour: found the unknown key",
    "{strategy: {kind: easgd_rr, momentum: 2}}": "6:49: training.strategy.momentum: found 2",
    "{strategy: {kind: hetero_local_sgd}}": "6:23: training.strategy.h_by_class.gpu: found 'gpu'",
}


@pytest.mark.parametrize(("training", "said"), WRONG.items())
def test_what_is_wrong_beside_or_in_a_preset_is_told_with_its_place(study, training, said):
    with pytest.raises(InputError) as caught:
        study(training)
    assert f"s.yaml:{said}" in str(caught.value)


def test_editors_know_presets():
    schema = json_schema()
    checker = jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": "#/$defs/Training"})
    assert checker.is_valid({"strategy": {"kind": "easgd_rr", "momentum": 0.5}})
    assert not checker.is_valid({"strategy": {"kind": "easgd_r"}})


# compression


def test_compression_reaches_the_job(study):
    found = study("{strategy: {kind: sync_sgd}, compression: {kind: top_k, share: 0.1}}")
    job = job_of(found.scenarios[0])
    assert job.compression == found.scenarios[0].training.compression
    assert job.item_bytes == 4


REFUSED = [
    ("{strategy: {kind: gossip}, gossip: {graph: ring}, compression: {kind: top_k}}", "quantiser: qsgd"),
    ("{strategy: {kind: ad_psgd}, gossip: {graph: ring}, compression: {kind: sign}}", "quantiser: qsgd"),
    ("{strategy: {kind: sgp}, gossip: {graph: ring}, compression: {kind: powersgd}}", "quantiser: qsgd"),
    ("{strategy: {kind: dpsgd}, gossip: {graph: random_ring}, compression: {kind: top_k}}", "stays the same"),
    ("{strategy: {kind: easgd, sync_stage: 2}, compression: {kind: qsgd}}", "can compress what it sends"),
]  # fmt: skip


@pytest.mark.parametrize(("training", "expected"), REFUSED)
def test_what_cannot_be_compressed_is_refused(study, training, expected):
    with pytest.raises(InputError, match=expected):
        study(training)
    allowed = training.replace("top_k", "qsgd").replace("sign", "qsgd").replace("powersgd", "qsgd")
    allowed = allowed.replace("random_ring", "ring").replace("sync_stage: 2", "every: 1")
    assert study(allowed).run(record="summary").runs[0].summary["steps"] == 16


# notes


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("ring", None),  # -1/3 for evenly many: the border itself
        ("ring, lazy: 0.2", None),
        ("torus", None),
        ("torus, dims: [2, 2]", None),
        ("exponential", "one symmetric matrix"),
        ("random_matching", "one symmetric matrix"),
        ("custom, edges: [[0, 1], [1, 2], [2, 3], [0, 2], [1, 3]], weights: max_degree", None),
        ("star, weights: metropolis", None),
    ],
)
def test_d2_is_warned_of_graphs(study, graph, said):
    found = notes(study(f"{{strategy: {{kind: d2}}, gossip: {{graph: {graph}}}}}"))
    assert [said in note for note in found] == [True] * (said is not None)


def test_d2_is_told_how_lazy_to_be(study):
    grid = "{strategy: {kind: d2}, gossip: {graph: torus, dims: [4, 4]LAZY}}"
    more = ("cluster.topology.hosts=16",)
    (note,) = notes(study(grid.replace("LAZY", ""), *more))
    assert note == (
        "d2 on the graph torus will diverge: the smallest eigenvalue -0.600 is below -0.333; try `lazy: 0.18`"
    )
    assert notes(study(grid.replace("LAZY", ", lazy: 0.18"), *more)) == []
    assert notes(study("{strategy: {kind: dpsgd}, gossip: {graph: torus}}", *more)) == []
