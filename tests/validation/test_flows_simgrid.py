"""Finish times of flows that share a fat tree, against SimGrid's (`data/flows` of the shared material).

lat0: plain max-min fair sharing. lat1us: SimGrid shares a bottleneck in proportion to 1 / (latency of the
path), which is max-min with these weights. Compared by |finish - reference| / (reference - start).
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from scenarios.replay import replay

FLOWS = Path(__file__).parents[2] / "../shared/data/flows"

pytestmark = pytest.mark.skipif(not FLOWS.is_dir(), reason="the reference data are not here")


def column(file: Path, name: str) -> np.ndarray:
    with file.open(newline="") as lines:
        return np.array([float(row[name]) for row in csv.DictReader(lines)])


def errors(out: Path, reference: Path, flows: Path) -> np.ndarray:
    finish, right = column(out, "finish_s"), column(reference, "finish_s")
    assert column(out, "flow").tolist() == column(reference, "flow").tolist()
    return np.abs(finish - right) / (right - column(flows, "start_s"))


@pytest.mark.parametrize("count", [100, 1_000, 10_000])
def test_max_min_sharing(count: int, tmp_path: Path) -> None:
    given, out = FLOWS / f"k8_F{count}", tmp_path / "out.csv"
    flows = given / "flows.csv"
    replay(given / "links_lat0.csv", given / "routes.csv", flows, out)
    assert errors(out, given / "simgrid_lat0.csv", flows).max() < 1e-6


@pytest.mark.parametrize("count", [100, 1_000])
def test_weighted_sharing(count: int, tmp_path: Path) -> None:
    given, out, weighted = FLOWS / f"k8_F{count}", tmp_path / "out.csv", tmp_path / "flows.csv"
    with (given / "links_lat1us.csv").open(newline="") as lines:
        latency = {row["link"]: float(row["latency_s"]) for row in csv.DictReader(lines)}
    path: dict[str, float] = {}
    with (given / "routes.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            path[row["flow"]] = path.get(row["flow"], 0.0) + latency[row["link"]]
    with (given / "flows.csv").open(newline="") as lines, weighted.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["flow", "src", "dst", "size_bytes", "start_s", "weight"])
        for row in csv.DictReader(lines):
            writer.writerow([*row.values(), 1e-6 / path[row["flow"]]])
    replay(given / "links_lat1us.csv", given / "routes.csv", weighted, out)
    assert errors(out, given / "simgrid_lat1us.csv", weighted).max() < 1e-6
