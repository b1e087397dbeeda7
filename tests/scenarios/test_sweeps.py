"""Sweeps: points, resuming, failures, tables, best values, reports, and what the command says."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from scenarios import cli, load, store
from scenarios.build import simulate
from scenarios.check import resolve
from scenarios.include import SCENARIOS, shipped
from scenarios.report.sweep_front import pareto, quantity
from scenarios.study import Best
from scenarios.sweeps import local, table
from scenarios.sweeps.best import best_of
from scenarios.sweeps.plan import planned, ready
from scenarios.sweeps.points import folder, label, points
from scenarios.sweeps.settings import Measure, Setting, measure_of, ranked, settings
from scenarios.sweeps.sweep import SweepOrder, Swept, sweep
from scenarios.sweeps.terminal import SweepBar
from scenarios.sweeps.work import TOKEN, Task, made_by, scenario_of, work
from simulator.errors import InputError, InputErrors
from simulator.yaml_source import read

BASE = """\
paceline: 1
name: small
cluster:
  topology:
    kind: star
    hosts: 4
    link: {bandwidth: 10 Gbit/s, latency: 5 us}
    host: {kind: cpu_only, devices: {profile: v100_16gb_sxm, class: gpu}}
workload: {model: resnet18, batch: 32}
training: {strategy: {kind: sync_sgd}}
stop: {steps: 3}
"""
TWO_KEYS = """\
sweep:
  grid:
    workload.batch: [8, 16]
    cluster.topology.link.bandwidth: [1 Gbit/s, 10 Gbit/s, 25 Gbit/s]
  seeds: [1, 2]
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the small scenario with more behind it; the test runs in its folder."""
    monkeypatch.chdir(tmp_path)

    def make(more: str = TWO_KEYS, base: str = BASE) -> Path:
        path = tmp_path / "small.yaml"
        path.write_text(base + textwrap.dedent(more))
        return path

    return make


@pytest.fixture
def paceline(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def call(*arguments: object) -> SimpleNamespace:
        code = cli.status([str(one) for one in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call


def run(file: Path, jobs: int = 1, **options: Any) -> Swept:
    return sweep(ready(file), SweepOrder(Path("out"), jobs, report=False, **options))


# Points


def test_every_combination_in_order_of_the_file(write):
    plan = planned(ready(write()))
    assert [entry.number for entry in plan.entries] == list(range(12))
    assert [tuple(entry.values.values()) for entry in plan.entries[::2]] == [
        (8, "1 Gbit/s"), (8, "10 Gbit/s"), (8, "25 Gbit/s"),
        (16, "1 Gbit/s"), (16, "10 Gbit/s"), (16, "25 Gbit/s"),
    ]  # fmt: skip
    assert plan.entries[3].place == "default/batch=8,bandwidth=10Gbit_s/seed-2"
    assert plan.entries[3].document["cluster"]["topology"]["link"]["bandwidth"] == "10 Gbit/s"
    assert plan.entries[3].document["workload"]["batch"] == 8
    assert plan.entries[3].document["seed"] == 2
    assert len({entry.place for entry in plan.entries}) == 12


def test_zips_walk_side_by_side_within_the_grid(write):
    more = (
        "sweep: {grid: {workload.batch: [8, 16]}, zip: {stop.steps: [1, 2], cluster.topology.hosts: [2, 4]}}"
    )
    study = ready(write(more))
    assert [tuple(point.values.values()) for point in points(study, study.beside.sweep)] == [
        (8, 1, 2), (8, 2, 4), (16, 1, 2), (16, 2, 4)
    ]  # fmt: skip


def test_a_sweep_of_seeds_alone(write):
    swept = run(write("sweep: {seeds: {first: 5, count: 2}}"))
    assert [row["run_dir"] for row in swept.rows] == ["default/seed-5", "default/seed-6"]


def test_variants_that_the_sweep_names(write):
    more = """\
    variants: {a: {}, b: {stop.steps: 2}, c: {stop.steps: 1}}
    sweep: {variants: [c, a], grid: {workload.batch: [8, 16]}}
    """
    swept = run(write(more))
    assert [(row["variant"], row["steps"]) for row in swept.rows] == [("c", 4)] * 2 + [("a", 12)] * 2


def test_cases_are_overrides_at_every_point(write):
    more = """\
    sweep:
      cases:
        quiet: {}
        slow: {cluster.topology.link.bandwidth: 1 Gbit/s, stop: {steps: 2}}
      grid: {workload.batch: [8, 16]}
      best: {by: workload.batch, metric: samples_per_s, goal: max, within: [case]}
    """
    swept = run(write(more))
    assert [(row["case"], row["workload.batch"], row["rounds"]) for row in swept.rows] == [
        ("quiet", 8, 3), ("quiet", 16, 3), ("slow", 8, 2), ("slow", 16, 2)
    ]  # fmt: skip
    assert swept.rows[0]["samples_per_s"] > 2 * swept.rows[2]["samples_per_s"]
    assert swept.rows[3]["run_dir"] == "default/case=slow,batch=16/seed-1"
    assert [one["case"] for one in swept.best["choices"]] == ["quiet", "slow"]
    swept.report()
    assert "case slow: " in Path("out/report.html").read_text()


def test_runs_of_a_sweep_are_compared_by_their_settings(write, paceline):
    run(write())
    body = json.loads(paceline("compare", "out", "--metric", "samples_per_s", "--json").out)
    assert body["baseline"] == "default/batch=16,bandwidth=10Gbit_s"
    assert len(body["rows"]) == 6
    assert {row["seeds"] for row in body["rows"]} == {2}


def test_a_shorter_key_is_set_before_the_longer_one(write):
    more = """\
    sweep:
      grid:
        training.optimizer.lr: [0.1, 0.2]
        training.optimizer: [{kind: sgd}, {kind: adam}]
    """
    kinds = [(e.document["training"]["optimizer"]["kind"], e.document["training"]["optimizer"]["lr"])
             for e in planned(ready(write(more))).entries]  # fmt: skip
    assert kinds == [("sgd", 0.1), ("adam", 0.1), ("sgd", 0.2), ("adam", 0.2)]


def test_names_of_folders_tell_all_values_apart():
    values = [
        "1",
        1,
        1.5,
        "1.5",
        True,
        "true",
        "10 Gbit/s",
        {"kind": "star"},
        {"kind": "star", "hosts": 2},
        [4, 4],
        None,
    ]
    assert len({folder({"a.b": value}) for value in values}) == len(values)
    assert label({"a.b": 1, "c.b": 2}) == "a.b=1,c.b=2"


# What is wrong with a file


WRONG = """
grid: {seed: [1, 2]} | sweep.grid.seed | use sweep.seeds
grid: {variants.a: [1]} | sweep.grid.variants.a | a key of a scenario
grid: {workload.batch: [8, 8]} | sweep.grid.workload.batch.1 | 8 again
grid: {workload.batch: [8, 8.0]} | sweep.grid.workload.batch.1 | 8 again
zip: {workload.batch: [8, 8], stop.steps: [3, 3]} | sweep.zip.workload.batch.1 | 8, 3 again
grid: {stop.steps: [1]}, zip: {stop.steps: [2]} | sweep.zip.stop.steps | each key once
grid: {stop: [{steps: 1}], stop.steps: [2]} | sweep.grid.stop.0 | swept too
seeds: {count: 2, max: 5} | sweep.seeds.max | fixed number
grid: {stop.steps: [1, 2]}, best: {by: stop.steps, metric: digest} | sweep.best.metric | a number
grid: {stop.steps: [1]}, best: {by: stop.steps, metric: steps, within: [stop.steps]} | sweep.best.within.0 | t
grid: {workload.batch: [8, -1]} | workload.batch | more than 0
grid: {cluster.topology.hosts: [4, 8], cluster.placement.workers: [8]} | cluster.placement.workers | hosts=4
grid: {network.collective.tree_chunks: [2, 4]} | network.collective.tree_chunks | nothing here uses
grid: {training.strategy.kind: [local_sgd], training.strategy.h: [1, 0]} | training.strategy.h | more than 0
cases: {a: {stop.steps: 1}}, grid: {stop.steps: [2]} | sweep.cases.a.stop.steps | not both
cases: {a: {name: b}} | sweep.cases.a.name | a key of a scenario
cases: {a: {workload.batch: 0}} | workload.batch | more than 0
impossible: skip, grid: {workload.batch: [8, 0]} | workload.batch | more than 0
impossible: skip, grid: {workload.bath: [8, 16]} | workload.bath | did you mean 'batch'
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_wrong_sweeps_are_told_with_their_place(write, paceline, line):
    body, field, says = line.split(" | ")
    file = write(f"sweep: {{{body}}}\n")
    told = paceline("sweep", file, "--out", "out", "--json")
    assert (told.code, told.out) == (2, "")
    error = json.loads(told.err)["error"]
    assert error["field"] == field
    assert says in " ".join((error["found"], error["expected"], error["hint"]))
    assert (error["file"], error["line"] > 0) == (str(file), True)
    assert not Path("out").exists()
    assert paceline("check", file, "--json").code == 2


def test_a_key_that_changes_nothing_is_refused(write):
    more = """\
    problem: {kind: digits_mlp}
    variants: {a: {problem: null}}
    sweep: {grid: {training.strategy.bucket_bytes: [25 MB, 25000 kB]}}
    """
    with pytest.raises(InputErrors, match="bucket_bytes"):
        planned(ready(write(more)))


def test_a_value_of_the_command_line_that_the_sweep_would_replace(write, paceline):
    file = write()
    told = paceline("sweep", file, "--set", "workload.batch=4")
    assert told.code == 2
    assert "set the sweep's own list" in told.err
    assert paceline("sweep", file, "--set", "workload={model: resnet18, batch: 4}", "--dry-run").code == 0


def test_no_more_runs_than_allowed(write, paceline):
    told = paceline("sweep", write(), "--most", 11)
    assert told.code == 2
    assert "1 variants x 6 points x 2 seeds = 12 runs" in told.err
    assert not Path("runs").exists()


def test_run_names_the_command_for_a_sweep(write, paceline):
    told = paceline("run", write())
    assert told.code == 2
    assert "`paceline sweep` runs it" in told.err
    assert "the key 'sweep'" in paceline("sweep", write("")).err


# What is written


def test_the_table_has_a_row_a_run_and_a_column_a_number(write):
    swept = run(write())
    frame = pd.read_parquet("out/sweep.parquet")
    assert list(frame.columns[:6]) == [
        "run_dir", "status", "variant", "seed", "workload.batch", "cluster.topology.link.bandwidth"
    ]  # fmt: skip
    assert len(frame) == 12
    assert set(frame["status"]) == {"done"}
    summary = json.loads((Path("out") / frame["run_dir"][7] / "summary.json").read_text())
    for key, value in table.flat(summary):
        cell = frame[key][7]
        assert (pd.isna(cell) and value is None) or cell == value
    with Path("out/sweep.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["simulated_s"]) for row in rows] == frame["simulated_s"].tolist()
    assert (rows[0]["final_loss"], rows[0]["validated"]) == ("", "false")
    assert swept.table.equals(frame)
    assert json.loads(Path("out/summary.json").read_text()) == swept.as_json


def test_duckdb_reads_it(write):
    duckdb = pytest.importorskip("duckdb")
    run(write())
    found = duckdb.sql(
        "select \"workload.batch\", avg(samples_per_s) from 'out/sweep.parquet' group by 1"
    ).fetchall()
    assert sorted(batch for batch, _ in found) == [8, 16]


def test_columns_have_one_type_and_gaps():
    rows = [
        table.row(
            "a", "done", "v", 1, {"k": "x"}, {"steps": 3, "loss": 1.0, "ok": True, "name": "n"}, wall_s=0.1
        ),
        table.row("b", "failed", "v", 2, {"k": "y"}, error="broken"),
    ]
    names = table.columns_of(rows)
    assert names[-2:] == ["error", "wall_s"]
    assert table.as_csv(rows, names).splitlines()[2] == "b,failed,v,2,y,,,,,broken,"


def test_tables_come_back_as_they_were(tmp_path):
    rows = [
        table.row(
            "a", "done", "v", 1, {"k": 1.5}, {"steps": 3, "loss": None, "ok": False, "name": "ä", "mixed": 1}
        ),
        table.row(
            "b",
            "done",
            "v",
            2,
            {"k": 2.0},
            {"steps": None, "loss": 2.5, "ok": True, "name": None, "mixed": "x"},
        ),
    ]
    table.write(rows, tmp_path)
    back = table.read(tmp_path)
    assert [row["steps"] for row in back] == [3, None]
    assert [row["loss"] for row in back] == [None, 2.5]
    assert [row["ok"] for row in back] == [False, True]
    assert [row["name"] for row in back] == ["ä", None]
    assert [row["mixed"] for row in back] == ["1", "x"]
    frame = pd.read_parquet(tmp_path / "sweep.parquet")
    assert frame["seed"].tolist() == [1, 2]
    with pytest.raises(InputError, match="the table of a sweep"):
        table.read(tmp_path / "nothing")


def test_runs_stay_small(write):
    run(write())
    place = Path("out/default/batch=8,bandwidth=1Gbit_s/seed-1")
    assert {path.name for path in place.iterdir()} == {
        "scenario.yaml", "manifest.json", "summary.json", "workers.parquet", "links.parquet"
    }  # fmt: skip
    assert sum(path.stat().st_size for path in place.iterdir()) < 20_000


def test_a_run_of_a_sweep_is_the_run_of_its_scenario(write):
    swept = run(write())
    again = load(Path("out") / swept.rows[5]["run_dir"] / "scenario.yaml").run()
    assert again.summary["digest"] == swept.rows[5]["digest"]


def test_record_keeps_more_on_request(write):
    run(write("sweep: {grid: {workload.batch: [8]}, record: steps}"))
    assert Path("out/default/batch=8/seed-1/steps.parquet").exists()
    run(write("sweep: {grid: {workload.batch: [8]}, record: steps}"), record="all")
    assert Path("out/default/batch=8/seed-1/spans.parquet").exists()


# Resuming


class Counts:
    """A listener that counts."""

    def __init__(self) -> None:
        self.finished = self.ended = 0

    def checked(self, done: int, total: int) -> None:
        assert done <= total

    def begins(self, total: int, finished: int, root: Path) -> None:
        self.finished = finished

    def ends(self, row: dict[str, Any]) -> None:
        self.ended += 1


def test_finished_runs_are_used_again_and_others_made(write):
    first = run(write())
    (Path("out") / first.rows[3]["run_dir"] / "manifest.json").unlink()
    counts = Counts()
    again = run(write(), listener=counts)
    assert (counts.finished, counts.ended) == (11, 1)
    assert [row["digest"] for row in again.rows] == [row["digest"] for row in first.rows]
    wider = Counts()
    run(write(TWO_KEYS.replace("[8, 16]", "[4, 8, 16]")), listener=wider)
    assert (wider.finished, wider.ended) == (12, 6)
    forced = Counts()
    run(write(), listener=forced, force=True)
    assert (forced.finished, forced.ended) == (0, 12)


def test_a_changed_scenario_is_made_anew(write):
    run(write())
    counts = Counts()
    run(write(base=BASE.replace("steps: 3", "steps: 4")), listener=counts)
    assert counts.finished == 0


class Interrupts(Counts):
    """Ctrl-C after some runs."""

    def ends(self, row: dict[str, Any]) -> None:
        super().ends(row)
        if self.ended == 4:
            raise KeyboardInterrupt


def test_an_interrupted_sweep_leaves_its_table_and_goes_on(write):
    with pytest.raises(KeyboardInterrupt):
        run(write(), listener=Interrupts())
    rows = table.read(Path("out"))
    assert [row["status"] for row in rows] == ["done"] * 4 + ["skipped"] * 8
    counts = Counts()
    assert run(write(), listener=counts).count("done") == 12
    assert counts.finished == 4


def test_two_sweeps_do_not_share_a_directory(write):
    pytest.importorskip("fcntl")
    file = write()

    class Second(Counts):
        def ends(self, row: dict[str, Any]) -> None:
            with pytest.raises(InputError, match="no other sweep"):
                run(file)
            super().ends(row)

    counts = Second()
    assert run(file, listener=counts).count("done") == 12
    assert counts.ended == 12


def test_the_directory_of_a_run_becomes_that_of_a_sweep(write, paceline):
    assert paceline("run", write(""), "--out", "out", "--record", "summary").code == 0
    run(write())
    assert not Path("out/manifest.json").exists()
    assert len(store.find_runs(Path("out"))) == 12


# Failures

OWN = '''
import os, signal
from simulator.strategies.sync_sgd import SyncSGD
class Fragile(SyncSGD):
    """Fails as asked."""
    kind: str = "fragile:Fragile"
    how: str = "well"
    def worker(self, w):
        if self.how == "raises":
            raise RuntimeError("broken on purpose")
        if self.how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().worker(w)
'''
FRAGILE = """\
training: {strategy: {kind: "fragile:Fragile"}}
sweep: {grid: {training.strategy.how: [well, HOW, fine, good]}, seeds: [1, 2]}
"""


@pytest.fixture
def fragile(write, tmp_path, monkeypatch):
    """A sweep over a method of the user's own that fails at one of its points."""
    (tmp_path / "fragile.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("fragile", None)
    base = BASE.replace("training: {strategy: {kind: sync_sgd}}\n", "")
    yield lambda how: write(FRAGILE.replace("HOW", how), base)
    sys.modules.pop("fragile", None)


def test_a_failed_run_is_noted_and_the_rest_goes_on(fragile, paceline):
    file = fragile("raises")
    told = paceline("sweep", file, "--out", "out", "--jobs", 1, "--allow-code", "--json")
    assert told.code == 2  # the fault is in the user's code
    body = json.loads(told.out)
    assert body["failed"] == 2
    statuses = [one["status"] for one in body["runs"]]
    assert statuses == ["done"] * 2 + ["failed"] * 2 + ["done"] * 4
    failed = body["runs"][2]
    assert failed["error"] == "RuntimeError: broken on purpose"
    noted = json.loads((Path("out") / failed["run_dir"] / "error.json").read_text())
    assert "fragile.py" in noted["traceback"]
    shown = paceline("sweep", file, "--out", "out", "--jobs", 1, "--allow-code")
    assert "8 runs: 6 done, 2 failed" in shown.out
    assert "broken on purpose" in shown.out
    assert "broken on purpose" in Path("out/report.html").read_text()


def test_what_failed_is_tried_again_and_what_is_finished_is_not(fragile):
    study = ready(fragile("raises"), allow_code=True)
    assert sweep(study, SweepOrder(Path("out"), 1, report=False)).failed == 2
    counts = Counts()
    sweep(study, SweepOrder(Path("out"), 1, report=False, listener=counts))
    assert (counts.finished, counts.ended) == (6, 2)
    Path("fragile.py").write_text(OWN + "# mended\n")
    changed = Counts()
    sweep(study, SweepOrder(Path("out"), 1, report=False, listener=changed))
    assert changed.finished == 0


def test_a_failure_of_ours_is_exit_code_1(write, paceline, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("scenarios.build.simulate", broken)
    told = paceline("sweep", write(), "--jobs", 1)
    assert told.code == 1
    assert "12 runs: 0 done, 12 failed" in told.out
    assert told.out.count("ZeroDivisionError: ours") == 5
    assert "and 7 more" in told.out


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_run_that_kills_its_process_is_noted_and_the_rest_goes_on(fragile):
    study = ready(fragile("dies"), allow_code=True)
    swept = sweep(study, SweepOrder(Path("out"), 2, report=False))
    assert [row["status"] for row in swept.rows] == ["done"] * 2 + ["failed"] * 2 + ["done"] * 4
    assert swept.rows[2]["error"] == local.DIED
    assert swept.exit_code == 1


def test_points_that_cannot_be_are_left_out_on_request(write, paceline):
    more = """\
    sweep:
      impossible: skip
      grid: {cluster.topology.kind: [star, hypercube], cluster.topology.hosts: [4, 6, 8]}
    """
    swept = run(write(more))
    assert [row["status"] for row in swept.rows] == ["done"] * 4 + ["skipped", "done"]
    assert "power of two" in swept.rows[4]["error"]
    assert swept.exit_code == 0
    told = paceline("sweep", write(more.replace("impossible: skip", "")))
    assert told.code == 2
    assert "kind=hypercube,hosts=6" in told.err


def test_only_the_input_at_fault_is_exit_code_2():
    rows = [{"status": "failed"}, {"status": "done"}]
    assert Swept("x", Path(), rows, {}, input_failed=1).exit_code == 2
    assert Swept("x", Path(), rows, {}, input_failed=0).exit_code == 1
    assert Swept("x", Path(), rows[1:], {}).exit_code == 0


# Workers elsewhere


def task(write: Any, **changes: Any) -> Task:
    plan = planned(ready(write()))
    entry = plan.entries[0]
    root, folder = str(Path("elsewhere").resolve()), str(Path.cwd())
    given = (entry.document, {}, "auto", "summary", False, "small.yaml", made_by(), folder)
    made = Task(0, root, entry.place, "token", *given)
    return replace(made, **changes)


def test_a_worker_that_does_not_see_the_directory_hands_the_files_back(write):
    done = work(task(write))
    assert done.error is None
    assert not Path("elsewhere").exists()
    assert set(done.files) >= {"scenario.yaml", "manifest.json", "summary.json", "links.parquet"}
    store.write_files(Path("here"), done.files)
    assert store.read_run(Path("here")).summary == done.summary


def test_a_worker_that_sees_the_directory_writes_there(write):
    root = Path("shared").resolve()
    root.mkdir()
    (root / TOKEN).write_text("token")
    given = task(write, root=str(root))
    assert work(given).files is None
    assert store.read_run(root / given.place).seed == 1


def test_a_worker_of_another_version_refuses(write):
    done = work(task(write, made_by="0.0.1 abc"))
    assert done.summary is None
    assert "the same version" in done.error


def test_another_backend_must_be_installed(write, monkeypatch):
    for backend, module in (("dask", "distributed"), ("ray", "ray")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(InputError, match=f"paceline\\[{backend}\\]"):
            run(write(), backend=backend)


def test_workers_end_when_their_sweep_is_killed(tmp_path):
    code = """
        import os, sys, time
        from scenarios.sweeps.work import _end_with
        child = os.fork()
        if not child:
            _end_with(os.getppid())
            print(os.getpid(), flush=True)
        time.sleep(60)
    """
    if not hasattr(os, "fork"):
        pytest.skip("no fork")
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        os.kill(child, 0)
        process.kill()
    gone = False
    for _ in range(100):
        try:
            status = Path(f"/proc/{child}/stat")
            gone = status.exists() and status.read_text().split()[2] == "Z"
            os.kill(child, 0)
        except ProcessLookupError:
            gone = True
        if gone:
            break
        __import__("time").sleep(0.1)
    assert gone


# Best values


def rows_with(numbers: dict[tuple[str, float, int], float | None]) -> list[table.Row]:
    return [
        table.row("", "done", variant, seed, {"lr": lr}, {"time_to_target_s": value})
        for (variant, lr, seed), value in numbers.items()
    ]


BY_LR = Best(by="lr", metric="time_to_target_s", goal="min", within=("variant",))


def test_the_best_value_of_each_variant():
    numbers = {
        ("sync", 0.1, 1): 5.0, ("sync", 0.1, 2): 7.0, ("sync", 0.3, 1): 4.0, ("sync", 0.3, 2): 4.5,
        ("sync", 1.0, 1): 4.4, ("sync", 1.0, 2): 4.4, ("gossip", 0.1, 1): 3.0, ("gossip", 0.1, 2): 3.0,
    }  # fmt: skip
    best = best_of(rows_with(numbers), BY_LR, [0.1, 0.3, 1.0])
    sync, gossip = best["choices"]
    assert (sync["variant"], sync["lr"], sync["mean"], sync["at_end"]) == ("sync", 0.3, 4.25, False)
    assert (gossip["lr"], gossip["at_end"]) == (0.1, True)
    assert [one["mean"] for one in sync["candidates"]] == [6.0, 4.25, 4.4]
    assert (
        best_of(rows_with(numbers), BY_LR.model_copy(update={"goal": "max"}), [0.1, 0.3, 1.0])["choices"][0][
            "lr"
        ]
        == 0.1
    )


def test_a_value_that_misses_the_target_is_never_better_than_one_that_does_not():
    numbers = {("a", 0.1, 1): 1.0, ("a", 0.1, 2): None, ("a", 0.3, 1): 9.0, ("a", 0.3, 2): 9.0}
    (choice,) = best_of(rows_with(numbers), BY_LR, [0.1, 0.3])["choices"]
    assert (choice["lr"], choice["without"], choice["at_end"]) == (0.3, 0, False)
    (none,) = best_of(rows_with({("a", 0.1, 1): None, ("a", 0.3, 1): None}), BY_LR, [0.1, 0.3])["choices"]
    assert (none["lr"], none["mean"], none["without"]) == (None, None, 1)


def test_best_pools_what_it_is_not_within(write):
    more = TWO_KEYS + "  best: {by: workload.batch, metric: samples_per_s, goal: max}\n"
    (choice,) = run(write(more)).best["choices"]
    assert (choice["workload.batch"], choice["runs"]) == (16, 6)


# Reports


def test_the_measure_that_decides():
    best = {"metric": "final_loss", "goal": "min"}
    assert measure_of(best, None, []) == Measure("final_loss", "min")
    assert measure_of(None, {"stop": {"target": {"loss": 0.1}}}, []) == Measure("time_to_target_s", "min")
    assert measure_of(None, None, [{"final_loss": 0.5}]) == Measure("final_loss", "min")
    assert measure_of(None, None, [{"final_loss": None}]) == Measure("samples_per_s", "max")
    wasted = {"samples_wasted": 3, "useful_samples_per_s": 1.0}
    assert measure_of(None, None, [wasted]) == Measure("useful_samples_per_s", "max")


def test_settings_gather_seeds_and_need_all_of_them():
    rows = rows_with({("a", 0.1, 1): 1.0, ("a", 0.1, 2): 3.0, ("a", 0.3, 1): 0.5, ("a", 0.3, 2): None})
    found = settings(rows, ["lr"])
    assert [one.mean("time_to_target_s") for one in found] == [2.0, None]
    assert [one.values["lr"] for one in ranked(found, Measure("time_to_target_s", "min"))] == [0.1]


def test_a_front_holds_what_nobody_beats_in_both():
    def setting(name: str, loss: float, cost: float) -> Setting:
        return Setting(name, {}, [{"status": "done", "loss": loss, "cost": cost}])

    found = [
        setting("a", 1, 9),
        setting("b", 2, 5),
        setting("c", 3, 6),
        setting("d", 4, 1),
        setting("e", 2, 7),
    ]
    front = pareto(found, quantity("loss", "min"), quantity("cost", "min"))
    assert [one.variant for one in front] == ["a", "b", "d"]
    other = pareto(found, quantity("loss", "max"), quantity("cost", "min"))
    assert [one.variant for one in other] == ["d"]


def test_report_of_two_keys_is_a_heat_map(write, paceline):
    file = write("variants: {a: {}, b: {stop.steps: 4}}\n" + TWO_KEYS)
    assert paceline("sweep", file, "--out", "out", "--jobs", 1).code == 0
    page = Path("out/report.html").read_text()
    assert 'id="heat-0"' in page
    assert 'id="heat-1"' in page
    assert "Best samples/s: " in page
    told = json.loads(paceline("report", "out", "--out", "again.html", "--json").out)
    assert (told["runs"], told["report"]) == (24, "again.html")
    assert Path("again.html").read_text() == page
    assert "one sweep at a time" in paceline("report", "out", "out").err


def test_report_of_one_key_is_lines_and_of_none_a_table(write, paceline):
    one = write("sweep: {grid: {workload.batch: [8, 16, 32]}, seeds: [1, 2]}")
    assert paceline("sweep", one, "--out", "out", "--jobs", 1).code == 0
    assert 'id="lines"' in Path("out/report.html").read_text()
    assert paceline("sweep", write("sweep: {seeds: [1, 2]}"), "--out", "none", "--jobs", 1).code == 0
    assert "Best samples/s: default" in Path("none/report.html").read_text()


def test_a_report_escapes_what_a_file_says(write, paceline):
    more = 'sweep: {grid: {cluster.topology.host.devices.class: ["<b>x</b>", gpu], stop.steps: [1, 2]}}'
    assert paceline("sweep", write(more), "--out", "out", "--jobs", 1).code == 0
    page = Path("out/report.html").read_text()
    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page


# The command


def test_dry_run_lists_and_writes_nothing(write, paceline):
    file = write()
    told = paceline("sweep", file, "--dry-run", "--json", "--jobs", 2)
    body = json.loads(told.out)
    assert (told.code, len(body["runs"]), body["to_run"], body["jobs"]) == (0, 12, 12, 2)
    assert body["runs"][2]["cluster.topology.link.bandwidth"] == "10 Gbit/s"
    assert body["estimate_s"] == pytest.approx(12 * body["run_s"] / 2)
    assert body["run_s"] > 0
    assert not Path("runs").exists()
    run(file)
    shown = paceline("sweep", file, "--dry-run", "--out", "out").out
    assert "12 runs, 12 of them finished already" in shown


def test_dry_run_of_runs_that_fail(fragile, paceline):
    told = paceline(
        "sweep",
        fragile("raises").name,
        "--dry-run",
        "--allow-code",
        "--set",
        "sweep.grid.training.strategy.how=[raises]",
    )
    assert told.code == 0
    assert "A run on trial failed" in told.out


def test_json_is_one_object_and_nothing_else(write, paceline):
    told = paceline("sweep", write(), "--json", "--jobs", 1)
    body = json.loads(told.out)
    assert (told.code, told.err) == (0, "")
    assert (len(body["runs"]), body["failed"], body["best"]) == (12, 0, {})
    first = body["runs"][0]
    assert (first["workload.batch"], first["seed"], first["step_time_s"]["mean"] > 0) == (8, 1, True)
    (place,) = Path("runs").iterdir()
    assert place.name.startswith("small-")
    assert (place / first["run_dir"] / "summary.json").exists()


def test_sweeping_a_file_without_a_sweep(write, paceline):
    told = paceline(
        "sweep", write(""), "--set", "sweep.grid.workload.batch=[8, 16]", "--set", "sweep.seeds=[3]", "--json"
    )
    assert [(one["workload.batch"], one["seed"]) for one in json.loads(told.out)["runs"]] == [(8, 3), (16, 3)]


def test_seed_of_the_command_line(write, paceline):
    told = paceline("sweep", write(), "--seed", 9, "--json", "--jobs", 1)
    assert {one["seed"] for one in json.loads(told.out)["runs"]} == {9}


def test_lines_of_progress_where_there_is_no_terminal(write, capsys, monkeypatch):
    monkeypatch.setattr("scenarios.sweeps.terminal.LINE_EVERY", -1.0)
    with SweepBar() as bar:
        run(write(), listener=bar)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "12 runs: out"
    assert lines[4].startswith("4 of 12 runs, ")
    assert "left" in lines[4]
    assert lines[-1].endswith("about 0 s left")


def test_everything_from_python(write):
    swept = resolve(load(write())).sweep(out="out", jobs=1)
    assert swept.count("done") == 12
    assert (swept.root / "report.html").exists()
    assert math.isfinite(swept.table["samples_per_s"].sum())


SHIPPED = [name for name, path in shipped(SCENARIOS).items() if read(path)[0].get("sweep") is not None]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_sweeps_run_at_reduced_size(name):
    plan = planned(ready(name))
    assert len(plan.entries) <= 500
    firsts = {(entry.variant, entry.values.get("case")): entry for entry in reversed(plan.entries)}
    for entry in firsts.values():
        document = {**entry.document, "stop": {"steps": 2}}
        summary = simulate(scenario_of(document, name, False), record="summary").summary
        assert summary["steps_per_worker_max"] == 2
