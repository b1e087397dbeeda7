"""What is shipped: listed, loadable, complete; and the JSON Schema that editors check scenario files with."""

from __future__ import annotations

import subprocess
import sys

import jsonschema
import pytest

from scenarios.catalogue import LISTS, header, listing
from scenarios.check import resolve
from scenarios.include import SCENARIOS, TOPOLOGIES, shipped
from scenarios.json_schema import json_schema, write
from scenarios.loading import load
from simulator.errors import InputError
from simulator.strategies import KINDS
from simulator.yaml_source import Node, read

SCENARIO = """
cluster: {CLUSTER}
workload: {model: resnet18, batch: 32, dtype: DTYPE}
training: {strategy: {kind: sync_sgd}}
stop: {steps: 1}
"""


@pytest.mark.parametrize("kind", LISTS)
def test_every_list(kind):
    entries = listing(kind)
    assert entries
    assert [entry["name"] for entry in entries] == sorted({entry["name"] for entry in entries})
    for entry in entries:
        assert set(entry) == {"name", "summary", "source"}
        assert entry["name"]
        assert entry["summary"]
        assert "\n" not in entry["summary"] + entry["source"]


def test_an_unknown_list():
    with pytest.raises(InputError, match="did you mean 'strategies'"):
        listing("strategy")


def test_headers(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text(
        "# Question: what\n#   then?\n# Source: here\n# Finding: this\na: 1\n# Source: not this\n"
    )
    assert header(file) == {"Question": "what then?", "Source": "here", "Finding": "this"}
    file.write_text("# Just words\na: 1\n")
    assert header(file) == {"Question": "Just words"}


def values(node: Node, key: str) -> set[str]:
    """All values of a key, dotted or not, in a file."""
    if isinstance(node.content, list):
        return set().union(*(values(item, key) for item in node.content))
    if not isinstance(node.content, dict):
        return set()
    own = {str(v.content) for k, v in node.content.items() if k.split(".")[-1] == key}
    return own.union(*(values(value, key) for value in node.content.values()))


def test_every_method_graph_and_topology_has_a_scenario():
    used = set()
    for path in shipped(SCENARIOS).values():
        node = read(path)[0]
        used |= values(node, "kind") | values(node, "graph")
    assert used >= set(KINDS)
    assert used >= {
        "star",
        "ring",
        "full_mesh",
        "leaf_spine",
        "fat_tree",
        "pcie_tree",
        "nvswitch",
        "cpu_only",
    }
    assert used >= {"lognormal", "gamma", "pareto", "two_point", "constant"}
    assert used >= {
        "random_matching",
        "complete",
        "exponential",
        "one_peer_exponential",
        "torus",
        "random_ring",
    }


CLUSTERS = [name for name in shipped(TOPOLOGIES)] + ["four_by_four#two_sites"]


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_shipped_cluster_is_listed_and_can_be_named(name, tmp_path):
    assert name in {entry["name"] for entry in listing("topologies")}
    file = tmp_path / "s.yaml"
    dtype = "bf16" if "torus" in name else "fp32"
    file.write_text(SCENARIO.replace("{CLUSTER}", name).replace("DTYPE", dtype))
    assert resolve(load(file)).scenarios


@pytest.fixture(scope="module")
def checker():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", shipped(SCENARIOS))
def test_editors_accept_shipped_scenarios(name, checker):
    checker.validate(read(shipped(SCENARIOS)[name])[0].data)


@pytest.mark.parametrize(
    "path",
    [
        ("stop", "stepps"),
        ("training", "strategy", "kind"),
        ("workload", "batch"),
        ("network", "fidelity"),
        ("zz",),
    ],
)
def test_editors_refuse_wrong_scenarios(path, checker):
    data = read(shipped(SCENARIOS)["quickstart"])[0].data
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "wrong"
    assert not checker.is_valid(data)


def test_the_schema_is_written(tmp_path):
    write(tmp_path / "x.json")
    assert "Paceline scenario" in (tmp_path / "x.json").read_text()
    done = subprocess.run(
        [sys.executable, "-m", "scenarios.json_schema", str(tmp_path / "y.json")],
        check=True,
        capture_output=True,
    )
    assert done.stdout == b""
    assert (tmp_path / "y.json").read_text() == (tmp_path / "x.json").read_text()
