"""The shipped topology files build and say what they say they are."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from topologies import CATALOGUE, Placement, Topology, names
from topologies.links import LinkSpec

ADAPTER = TypeAdapter(Topology)


def _documents():
    for path in sorted(CATALOGUE.glob("*.yaml")):
        for document in YAML(typ="safe").load_all(path):
            yield pytest.param(path, document, id=document.get("name", path.stem))


@pytest.mark.parametrize(("path", "document"), list(_documents()))
def test_it_builds_and_all_workers_reach_each_other(path, document):
    assert document["paceline"] == 1
    assert path.read_text().startswith("# ")
    spec = ADAPTER.validate_python(document["topology"])
    placement = Placement.model_validate(document.get("placement", {}))
    fabric = spec.build(lambda _: LinkSpec(bandwidth="300 GB/s", latency="1 us"))
    places = placement.place(fabric)
    assert len(places) == len(fabric.devices)  # the shipped clusters are used whole
    nodes = np.array([fabric.devices[place].node for place in places])
    paths = fabric.router.paths(nodes, np.roll(nodes, 1))
    moves = nodes != np.roll(nodes, 1)
    ends = fabric.head[np.take_along_axis(paths, (paths >= 0).sum(axis=1)[:, None] - 1, axis=1)[:, 0]]
    assert (ends[moves] == np.roll(nodes, 1)[moves]).all()


def test_names():
    assert {"four_by_four", "star_16", "a100_pod", "cpu_cluster"} <= set(names())
