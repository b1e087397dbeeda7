"""The command line: what is printed where, exit codes, messages, speed of --help, what is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from scenarios import cli, load
from scenarios.console import clean
from scenarios.run import default_out, ready
from scenarios.store import Run
from simulator.errors import StuckError

TIMING = """\
# Question: does it run?
paceline: 1
name: small
seeds: [1, 2]
cluster:
  topology:
    kind: star
    hosts: 4
    link: {bandwidth: 10 Gbit/s, latency: 5 us}
    host: {kind: cpu_only, devices: {profile: p100_sxm2, count: 1, class: gpu}}
  placement: {workers: 4, per: device, order: host_major}
workload: {model: resnet18, batch: 32, dtype: fp32}
training:
  strategy: {kind: sync_sgd}
stragglers:
  - {where: all, per: step, factor: {kind: lognormal, mean: 1.0, sigma: 0.2}}
stop: {steps: 6}
variants:
  sync: {}
  local: {training.strategy: {kind: local_sgd, h: 3}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small timing-only scenario; the test runs in its directory."""
    path = tmp_path / "small.yaml"
    path.write_text(TIMING)
    monkeypatch.chdir(tmp_path)
    return path


class Said:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        assert self.out == ""
        return json.loads(self.err)["error"]


@pytest.fixture
def paceline(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*arguments: object) -> Said:
        code = cli.status([str(one) for one in arguments])
        return Said(code, *capsys.readouterr())

    return call


Call = Callable[..., Said]


def test_run_writes_a_directory_a_variant_and_seed_and_compares(file: Path, paceline: Call) -> None:
    said = paceline("run", file, "--out", "out")
    assert said.code == 0, said.err
    out = file.parent / "out"
    runs = sorted(str(path.parent.relative_to(out)) for path in out.rglob("manifest.json"))
    assert runs == ["local/seed-1", "local/seed-2", "sync/seed-1", "sync/seed-2"]
    files = {path.name for path in (out / "sync" / "seed-1").iterdir()}
    assert files >= {
        "scenario.yaml", "manifest.json", "summary.json", "steps.parquet", "spans.parquet", "workers.parquet",
        "links.parquet", "trace.json.gz", "report.html",
    }  # fmt: skip
    assert (out / "report.html").exists()
    assert len(json.loads((out / "summary.json").read_text())["runs"]) == 4
    assert "local (" in said.out, "a verdict"
    assert "out/report.html" in said.out
    assert said.err == ""


def test_one_variant_and_one_seed_lie_in_the_directory_itself(file: Path, paceline: Call) -> None:
    said = paceline("run", file, "--out", "out", "--variant", "sync", "--seed", 7, "--json")
    assert said.code == 0, said.err
    assert (said.json["variant"], said.json["seed"]) == ("sync", 7)
    assert (file.parent / "out" / "manifest.json").exists()
    assert json.loads((file.parent / "out" / "summary.json").read_text()) == said.json
    assert (file.parent / "out" / "report.html").exists()


def test_json_is_one_object_and_nothing_else(file: Path, paceline: Call) -> None:
    said = paceline("run", file, "--out", "out", "--json", "--record", "summary")
    assert said.code == 0
    assert said.err == ""
    assert [(run["variant"], run["seed"]) for run in said.json["runs"]] == [
        ("sync", 1), ("sync", 2), ("local", 1), ("local", 2),
    ]  # fmt: skip


def test_finished_runs_are_used_again_unless_forced(file: Path, paceline: Call) -> None:
    first = paceline("run", file, "--json")
    assert first.code == 0, first.err
    (root,) = (file.parent / "runs").iterdir()
    assert root.name.startswith("small-")
    manifest = root / "sync" / "seed-1" / "manifest.json"
    before = manifest.stat().st_mtime_ns
    again = paceline("run", file)
    assert "4 finished runs used again" in again.out
    assert manifest.stat().st_mtime_ns == before
    assert paceline("run", file, "--json").json == first.json
    forced = paceline("run", file, "--json", "--force")
    assert manifest.stat().st_mtime_ns > before
    assert forced.json == first.json, "the same seed, the same summary"


def test_another_scenario_gets_another_directory(file: Path) -> None:
    places = {default_out(ready(file, sets)) for sets in ((), ["stop.steps=7"], ["stop.steps=8"])}
    assert len(places) == 3
    assert default_out(ready(file)) == default_out(ready(file))


def test_set_overrides(file: Path, paceline: Call) -> None:
    sets = ["--set", "stop.steps=3", "--set", "variants.local.training.strategy.h=2"]
    said = paceline("run", file, "--out", "o", "--variant", "local", *sets, "--json")
    assert said.code == 0, said.err
    assert [(run["variant"], run["steps_per_worker_max"]) for run in said.json["runs"]] == [("local", 3)] * 2
    scenario = (file.parent / "o" / "local" / "seed-1" / "scenario.yaml").read_text()
    assert "h: 2" in scenario


def test_the_engines_agree(file: Path, paceline: Call) -> None:
    found = [
        paceline("run", file, "--out", e, "--engine", e, "--json").json["runs"] for e in ("cohort", "process")
    ]
    assert [run["digest"] for run in found[0]] == [run["digest"] for run in found[1]]


def test_a_resolved_scenario_runs_to_the_same_result(file: Path, paceline: Call) -> None:
    first = paceline("run", file, "--out", "a", "--variant", "local", "--seed", 3, "--json").json
    again = paceline("run", "a/scenario.yaml", "--out", "b", "--json").json
    assert again == first


def test_check_prints_all_defaults_and_runs_nothing(file: Path, paceline: Call) -> None:
    said = paceline("check", file)
    assert said.code == 0, said.err
    assert said.out.count("fidelity: bundles") == 2
    assert not (file.parent / "runs").exists()
    both = paceline("check", file, "--json").json
    assert both["seeds"] == [1, 2]
    assert [scenario["variant"] for scenario in both["scenarios"]] == ["sync", "local"]


def test_list_names_what_is_shipped(paceline: Call) -> None:
    entries = paceline("list", "strategies", "--json").json
    assert {"sync_sgd", "local_sgd"} <= {entry["name"] for entry in entries}
    assert all(entry.keys() >= {"name", "summary", "source"} for entry in entries)
    assert "quickstart" in paceline("list").out


def test_compare_and_report_read_what_run_has_written(file: Path, paceline: Call) -> None:
    paceline("run", file, "--out", "out")
    compared = paceline("compare", "out", "--json").json
    assert compared["baseline"] == "sync"
    rate = next(
        row for row in compared["rows"] if (row["variant"], row["metric"]) == ("local", "samples_per_s")
    )
    assert rate["seeds"] == 2
    assert rate["paired"]
    assert rate["ratio_ci"][0] < rate["ratio"] < rate["ratio_ci"][1]
    shown = paceline("compare", "out", "--metric", "step_time_s.p95")
    assert "step_time_s.p95" in shown.out
    (file.parent / "out" / "report.html").unlink()
    said = paceline("report", "out", "--json").json
    assert said["runs"] == 4
    assert Path(said["report"]).read_text().startswith("<!doctype html>")


def test_runs_of_two_directories_compare_under_their_names(file: Path, paceline: Call) -> None:
    for name, steps in (("short", 4), ("long", 8)):
        paceline("run", file, "--variant", "sync", "--out", name, "--set", f"stop.steps={steps}")
    compared = paceline("compare", "long", "short", "--metric", "steps", "--json").json
    assert [(row["variant"], row["ratio"]) for row in compared["rows"]] == [
        ("long", 1.0), ("short", pytest.approx(0.5)),
    ]  # fmt: skip


WRONG: list[tuple[str, str, int, str]] = [
    ("bandwidth: 10 Gbit/s", "bandwidth: 10 Gbps", 9, "bandwidth"),
    ("stop: {steps: 6}", "stop: {step: 6}", 17, "stop.step"),
    ("kind: sync_sgd", "kind: sync_sdg", 14, "training.strategy"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "field"), WRONG)
def test_wrong_input_is_told_with_file_line_and_field(
    file: Path, paceline: Call, right: str, wrong: str, line: int, field: str
) -> None:
    file.write_text(TIMING.replace(right, wrong))
    for command in ("run", "check"):
        said = paceline(command, file)
        assert said.code == 2
        assert said.out == ""
        assert said.err.startswith(f"{file}:{line}:")
        assert field in said.err
        assert "Traceback" not in said.err
        error = paceline(command, file, "--json").error
        assert (error["file"], error["line"]) == (str(file), line)
        assert field in error["field"]
        assert error.keys() >= {"file", "line", "column", "field", "found", "expected", "hint"}
    assert not (file.parent / "runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"], ["run", "none.yaml"], ["run", "small.yaml", "--variant", "none"],
        ["run", "small.yaml", "--bogus"],
        ["run", "small.yaml", "--set", "no_equals"], ["run", "small.yaml", "--seed", "x"],
        ["run", "small.yaml", "--record", "some"], ["run", "small.yaml", "--engine", "warp"],
        ["run", "small.yaml", "--out", "small.yaml"], ["walk"], ["check"], ["list", "none"], ["compare"],
        ["compare", "none"], ["compare", "."], ["report"], ["report", "."], ["replay", "--flows", "none.csv"],
    ],
)  # fmt: skip
def test_wrong_arguments_exit_with_2_and_a_message(file: Path, paceline: Call, arguments: list[str]) -> None:
    said = paceline(*arguments)
    assert (said.code, said.out) == (2, "")
    assert 0 < len(said.err) < 3000
    assert "Traceback" not in said.err
    error = paceline(*arguments, "--json").error
    assert error.keys() >= {"file", "line", "column", "field", "found", "expected", "hint"}


def test_a_stuck_method_exits_with_2(file: Path, paceline: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(*_: object, **__: object) -> None:
        raise StuckError("worker 0 waits for worker 1")

    monkeypatch.setattr("scenarios.build.simulate", stuck)
    said = paceline("run", file)
    assert (said.code, said.out) == (2, "")
    assert said.err == "worker 0 waits for worker 1\n"  # the method's fault, not Paceline's
    assert paceline("run", file, "--json").error["found"] == "worker 0 waits for worker 1"


def test_a_bug_is_told_without_a_traceback(
    file: Path, paceline: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("scenarios.build.simulate", broken)
    said = paceline("run", file)
    assert said.code == 1
    assert said.err.startswith("KeyError: 'x'\n")
    assert "PACELINE_TRACEBACK=1" in said.err
    monkeypatch.setenv("PACELINE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        cli.status(["run", str(file)])


def test_an_interrupted_study_keeps_its_finished_runs(
    file: Path, paceline: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scenarios import build

    simulate, calls = build.simulate, []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return simulate(*arguments, **options)

    monkeypatch.setattr(build, "simulate", interrupted)
    assert paceline("run", file, "--out", "out").code == 130
    assert len(list((file.parent / "out").rglob("manifest.json"))) == 2
    assert paceline("run", file, "--out", "out").code == 0
    assert len(calls) == 5, "two runs were used again"


def test_text_of_a_file_cannot_steer_the_terminal(file: Path, paceline: Call) -> None:
    file.write_text(TIMING.replace("kind: sync_sgd", 'kind: "\\x1b[31mred\\x07"'))
    said = paceline("run", file)
    assert said.code == 2
    assert "\x1b" not in said.err
    assert "\x07" not in said.err
    assert clean("a\x1b[2Jb\nc\x9b") == "a\\x1b[2Jb\nc\\x9b"


def test_help_is_quick_and_has_examples(tmp_path: Path) -> None:
    times = []
    for command in ([], ["run"], ["check"], ["list"], ["compare"], ["report"], ["replay"], ["schema"]):
        began = perf_counter()
        said = subprocess.run(
            [sys.executable, "-m", "scenarios.cli", *command, "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        times.append(perf_counter() - began)
        assert not command or f"paceline {command[0]}" in said.stdout.split("For example:")[1]
    assert min(times) < 0.5, times


HEAVY = "{'torch', 'sklearn', 'pandas', 'plotly', 'numba', 'scipy', 'pyarrow', 'numpy', 'pydantic'}"


def run_and_list_modules(code: str, names: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*({names} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(said.stdout.split("\n")[-2].split())


def test_help_imports_nothing_heavy() -> None:
    assert run_and_list_modules("from scenarios import cli\ncli.status(['run', '--help'])", HEAVY) == set()


def test_a_timing_only_run_imports_neither_torch_nor_pandas_nor_sklearn(file: Path) -> None:
    code = f"from scenarios import cli\nassert cli.status(['run', {str(file)!r}]) == 0"
    assert run_and_list_modules(code, "{'torch', 'sklearn', 'pandas'}") == set()


def test_results_from_python(file: Path) -> None:
    outcome = load(file).run()
    assert outcome.root is None
    assert not (file.parent / "runs").exists(), "nothing is written unless asked for"
    assert len(outcome.summary["runs"]) == 4
    assert outcome.steps.groupby(["variant", "seed"], observed=True).size().tolist() == [24] * 4
    local: Run = outcome.run("local", seed=2)
    assert local.summary["seed"] == 2
    assert len(local.steps) == 24
    assert {"compute", "communication"} <= set(local.spans["kind"])
    page = outcome.report(file.parent / "r.html")
    assert page.exists()
    assert outcome.compare()["baseline"] == "sync"
    single = load(file, seed=1).run(["sync"], out="single")
    assert single.summary["variant"] == "sync"
    assert "variant" not in single.steps.columns
    assert (file.parent / "single" / "manifest.json").exists()


def test_replay_writes_when_each_flow_finishes(file: Path, paceline: Call) -> None:
    here = file.parent
    (here / "links.csv").write_text("link,bandwidth_bytes_per_s,latency_s\nl,100.0,0.5\n")
    (here / "routes.csv").write_text("flow,hop,link\na,0,l\nb,0,l\n")
    (here / "flows.csv").write_text("flow,src,dst,size_bytes,start_s\na,x,y,100,0\nb,x,y,300,0\n")
    tables = ["--links", "links.csv", "--routes", "routes.csv", "--flows", "flows.csv"]
    said = paceline("replay", *tables, "--out", "finish.csv", "--json")
    assert said.code == 0, said.err
    assert said.json == {"flows": 2, "out": "finish.csv", "last_finish_s": pytest.approx(4.5)}
    rows = (here / "finish.csv").read_text().split()
    assert rows[0] == "flow,finish_s"
    assert [float(row.split(",")[1]) for row in rows[1:]] == [pytest.approx(2.5), pytest.approx(4.5)]
    assert "2 flows" in paceline("replay", *tables, "--out", "finish.csv").out
    (here / "flows.csv").write_text("flow,src,dst,size_bytes,start_s\na,x,y,-1,0\n")
    wrong = paceline("replay", *tables, "--out", "finish.csv")
    assert wrong.code == 2
    assert wrong.err.startswith("flows.csv:2:")


def test_the_schema_describes_scenario_files(file: Path, paceline: Call) -> None:
    schema = paceline("schema").json
    assert {"cluster", "training", "stop", "variants"} <= schema["properties"].keys()
    assert paceline("schema", "--out", "s.json").code == 0
    assert json.loads((file.parent / "s.json").read_text()) == schema
