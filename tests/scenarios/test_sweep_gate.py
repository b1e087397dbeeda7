"""Two hundred runs: killed again and again, or spread over a cluster, the table is the undisturbed one."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scenarios import load

RUNS = 200
GATE = """\
paceline: 1
name: gate
cluster:
  topology:
    kind: star
    hosts: 4
    link: {bandwidth: 10 Gbit/s, latency: 5 us}
    host: {kind: cpu_only, devices: {profile: v100_16gb_sxm, class: gpu}}
workload: {model: resnet18, batch: 32}
training: {strategy: {kind: sync_sgd}}
stragglers: [{where: all, per: step, factor: {kind: lognormal, mean: 1.0, sigma: 0.2}}]
stop: {steps: 5}
variants:
  sync: {}
  server: {training.strategy: {kind: parameter_server}}
sweep:
  grid:
    workload.batch: [8, 16, 32, 64, 128]
    cluster.topology.link.bandwidth: [1 Gbit/s, 5 Gbit/s, 10 Gbit/s, 25 Gbit/s, 100 Gbit/s]
  seeds: {first: 1, count: 4}
  best: {by: workload.batch, metric: samples_per_s, goal: max, within: [variant]}
"""

Table = list[dict[str, str]]


def table(root: Path) -> Table:
    """The rows of a sweep, sorted, without what the clock on the wall says."""
    with (root / "sweep.csv").open(newline="") as file:
        rows = [
            {name: cell for name, cell in row.items() if name != "wall_s"} for row in csv.DictReader(file)
        ]
    return sorted(rows, key=lambda row: row["run_dir"])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate") / "gate.yaml"
    path.write_text(GATE)
    return path


@pytest.fixture(scope="module")
def undisturbed(file: Path) -> Table:
    """The table of the sweep as this process makes it."""
    swept = load(file).sweep(out=file.parent / "undisturbed", jobs=1)
    assert (swept.count("done"), len(swept.rows)) == (RUNS, RUNS)
    return table(swept.root)


def begin(file: Path, out: Path, jobs: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "scenarios.cli",
        "sweep",
        str(file),
        "--out",
        str(out),
        "--jobs",
        str(jobs),
    ]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)


def finished(out: Path) -> dict[Path, tuple[int, int]]:
    """The runs finished, with what would change if they were made again."""
    found = {path: path.stat() for path in out.glob("*/*/seed-*/manifest.json")}
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}


def kill(process: subprocess.Popen[bytes], whole_group: bool) -> None:
    """End it at once: alone, so that its workers find themselves orphans, or with them."""
    if whole_group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_five_times_the_table_is_the_undisturbed_one(file, undisturbed, tmp_path):
    out, rng = tmp_path / "killed", random.Random(3)
    kept: dict[Path, tuple[int, int]] = {}
    for number in range(5):
        jobs, more = rng.choice([1, 2, 3]), rng.randint(3, 20)
        process = begin(file, out, jobs)
        while process.poll() is None and len(finished(out)) < len(kept) + more:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.05))
        assert process.poll() is None, "the sweep has ended before it could be killed"
        kill(process, whole_group=number % 2 == 0)
        time.sleep(1.0)  # orphans end by themselves
        now = finished(out)
        assert now.items() >= kept.items(), "a finished run has been made again"
        kept = now
    assert 15 <= len(kept) < RUNS
    assert begin(file, out, 2).wait() == 0
    assert finished(out).items() >= kept.items()
    assert len(finished(out)) == RUNS
    assert table(out) == undisturbed
    hidden = [path.name for path in out.rglob(".*") if path.name not in (".lock", ".sweep")]
    assert hidden == [], "half-written files are left"


def test_processes_make_the_same_table(file, undisturbed, tmp_path):
    swept = load(file).sweep(out=tmp_path / "beside", jobs=2)
    assert swept.failed == 0
    assert table(swept.root) == undisturbed


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_makes_the_same_table(file, undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed")
    where = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "local_directory": str(tmp_path),
    }
    with distributed.LocalCluster(**where) as cluster:
        swept = load(file).sweep(out=tmp_path / "dask", backend="dask", address=cluster.scheduler_address)
    assert swept.failed == 0
    assert table(swept.root) == undisturbed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_makes_the_same_table(file, undisturbed, tmp_path):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        swept = load(file).sweep(out=tmp_path / "ray", backend="ray", address="auto")
    finally:
        ray.shutdown()
    assert swept.failed == 0
    assert table(swept.root) == undisturbed
