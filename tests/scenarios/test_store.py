"""Run directories: whole or not at all, read back as written, used again only where that is right."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios import store, tables
from scenarios.manifest import scenario_hash
from scenarios.run import input_hashes, own_code
from scenarios.store import Run
from simulator.errors import InputError
from simulator.result import COLUMNS, Coded, Result

Made = Callable[..., Run]


def written(path: Path, synthetic: ModuleType, **options: Any) -> Run:
    record = options.pop("record", "all")
    return store.write_run(path, synthetic.make_scenario(), synthetic.make_result(**options), record=record)


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_a_run_directory_holds_what_the_contract_names(tmp_path: Path, synthetic: ModuleType) -> None:
    written(tmp_path / "run", synthetic)
    tables_there = {f"{name}.parquet" for name in COLUMNS}
    assert names(tmp_path / "run") == tables_there | {
        "scenario.yaml", "manifest.json", "summary.json", "trace.json.gz",
    }  # fmt: skip
    assert names(tmp_path) == {"run"}, "nothing is left beside it"


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        ("summary", {"workers", "links", "curve"}),
        ("steps", {"workers", "links", "curve", "steps"}),
        ("all", set(COLUMNS)),
    ],
)
def test_the_record_level_decides_which_tables_are_kept(
    tmp_path: Path, synthetic: ModuleType, record: str, kept: set[str]
) -> None:
    written(tmp_path / "run", synthetic, record=record)
    assert {path.stem for path in (tmp_path / "run").glob("*.parquet")} == kept
    assert (tmp_path / "run" / "trace.json.gz").exists() == (record == "all")


def test_everything_reads_back_as_written(tmp_path: Path, synthetic: ModuleType) -> None:
    result: Result = synthetic.make_result(workers=5, steps=7)
    store.write_run(tmp_path / "run", synthetic.make_scenario(), result)
    again = store.read_run(tmp_path / "run")
    assert again.summary == result.summary
    assert again.scenario == synthetic.make_scenario()
    for name, table in result.tables().items():
        back = again.columns(name)
        assert back is not None
        assert list(back) == list(table)
        for column in table:
            np.testing.assert_array_equal(plain(back[column]), plain(table[column]))


def plain(column: Any) -> Any:
    return column.texts() if isinstance(column, Coded) else column


def test_frames_have_the_columns_of_the_contract(tmp_path: Path, synthetic: ModuleType) -> None:
    run = written(tmp_path / "run", synthetic, workers=3, steps=4)
    from_disk = store.read_run(tmp_path / "run")
    for one in (run, from_disk):
        assert list(one.steps.columns) == list(COLUMNS["steps"])
        assert len(one.steps) == 12
        assert set(one.spans["kind"]) == {"compute", "communication", "waiting"}
        assert set(one.curve["split"]) == {"test"}
        assert list(one.links.columns) == list(COLUMNS["links"])
        assert one.workers["host"].tolist() == ["h0", "h0", "h0"]


def test_a_table_that_was_not_recorded_is_an_error_that_says_how(
    tmp_path: Path, synthetic: ModuleType
) -> None:
    written(tmp_path / "run", synthetic, record="summary")
    with pytest.raises(InputError, match="--record all"):
        _ = store.read_run(tmp_path / "run").spans


def test_the_same_run_gives_the_same_files(tmp_path: Path, synthetic: ModuleType) -> None:
    for name in ("a", "b"):
        written(tmp_path / name, synthetic)
    for path in (tmp_path / "a").iterdir():
        if path.name != "manifest.json":
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_a_run_that_fails_half_way_leaves_nothing(
    tmp_path: Path, synthetic: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(tables, "write", full)
    with pytest.raises(OSError, match="disk full"):
        written(tmp_path / "run", synthetic)
    assert not list(tmp_path.iterdir())


def test_a_run_that_fails_half_way_leaves_the_old_one(
    tmp_path: Path, synthetic: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "run", synthetic, speed=1.0)
    before = (tmp_path / "run" / "summary.json").read_bytes()

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(tables, "write", full)
    with pytest.raises(OSError, match="disk full"):
        written(tmp_path / "run", synthetic, speed=0.5)
    assert (tmp_path / "run" / "summary.json").read_bytes() == before
    assert store.read_run(tmp_path / "run").summary["seed"] == 1


def test_files_of_others_in_the_directory_stay(tmp_path: Path, synthetic: ModuleType) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "run" / "report.html").write_text("of an older run")
    written(tmp_path / "run", synthetic, record="all")
    written(tmp_path / "run", synthetic, record="summary")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "run" / "spans.parquet").exists(), "no table of the older run may stay"
    assert not (tmp_path / "run" / "report.html").exists()


def test_a_file_in_the_way_is_wrong_input(tmp_path: Path, synthetic: ModuleType) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(InputError, match="directory that can be written"):
        written(tmp_path / "run", synthetic)
    assert (tmp_path / "run").read_text() == "a file"


def test_a_finished_run_is_used_again(tmp_path: Path, synthetic: ModuleType) -> None:
    written(tmp_path / "run", synthetic)
    found = store.finished(tmp_path / "run", synthetic.make_scenario(), "all")
    assert found is not None
    assert found.summary["variant"] == "sync"


def other_scenario(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "seed": 2}


def no_manifest(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    (path / "manifest.json").unlink()
    return document


def other_code(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "source_hash": "0"}))
    return document


def broken_manifest(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    (path / "manifest.json").write_text("{")
    return document


@pytest.mark.parametrize("change", [other_scenario, no_manifest, other_code, broken_manifest])
def test_no_other_run_is_used_again(
    tmp_path: Path, synthetic: ModuleType, change: Callable[..., Any]
) -> None:
    written(tmp_path / "run", synthetic)
    document = change(tmp_path / "run", synthetic.make_scenario())
    assert store.finished(tmp_path / "run", document, "all") is None


def test_a_run_with_fewer_tables_is_not_used_again(tmp_path: Path, synthetic: ModuleType) -> None:
    written(tmp_path / "run", synthetic, record="steps")
    document = synthetic.make_scenario()
    assert store.finished(tmp_path / "run", document, "summary") is not None
    assert store.finished(tmp_path / "run", document, "steps") is not None
    assert store.finished(tmp_path / "run", document, "all") is None


def test_a_changed_input_file_counts_like_a_changed_scenario(tmp_path: Path, synthetic: ModuleType) -> None:
    values = tmp_path / "measured.csv"
    values.write_text("1.0\n2.0\n")
    document = {
        **synthetic.make_scenario(),
        "stragglers": [{"factor": {"kind": "empirical", "file": str(values)}}],
    }
    before = input_hashes(document)
    assert list(before) == [str(values)]
    result = synthetic.make_result()
    result.facts["inputs"] = before
    store.write_run(tmp_path / "run", document, result)
    assert store.finished(tmp_path / "run", document, "all", before) is not None
    values.write_text("1.0\n3.0\n")
    assert store.finished(tmp_path / "run", document, "all", input_hashes(document)) is None


def test_code_of_the_users_own_is_never_trusted_to_be_the_same(synthetic: ModuleType) -> None:
    document = synthetic.make_scenario()
    assert not own_code(document)
    document["training"] = {"strategy": {"kind": "my_pkg.my_module:MyMethod"}}
    assert own_code(document)


def test_runs_are_found_by_the_study_or_below_a_directory(
    tmp_path: Path, study_at: Callable[..., list[Run]]
) -> None:
    study_at(tmp_path / "study", seeds=(1, 2), steps=3)
    found = store.find_runs(tmp_path / "study")
    keys = [(run.variant, run.seed) for run in found]
    assert keys == [("sync", 1), ("sync", 2), ("local", 1), ("local", 2), ("gossip", 1), ("gossip", 2)]
    (tmp_path / "study" / "summary.json").unlink()
    assert sorted(keys) == sorted((run.variant, run.seed) for run in store.find_runs(tmp_path))
    assert len(store.find_runs(tmp_path / "study" / "sync")) == 2
    assert len(store.find_runs(tmp_path / "study" / "sync" / "seed-1")) == 1


def test_a_study_summary_lists_its_runs(tmp_path: Path, study_at: Callable[..., list[Run]]) -> None:
    study_at(tmp_path, seeds=(1,), steps=3)
    runs = json.loads((tmp_path / "summary.json").read_text())["runs"]
    assert [run["variant"] for run in runs] == ["sync", "local", "gossip"]


@pytest.mark.parametrize("what", ["missing", "empty", "file"])
def test_what_is_no_run_is_said_to_be_none(tmp_path: Path, what: str) -> None:
    path = tmp_path / "there"
    if what == "empty":
        path.mkdir()
    if what == "file":
        path.write_text("")
    with pytest.raises(InputError) as caught:
        store.find_runs(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("summary.json", b"{"), ("summary.json", b"[1]"), ("summary.json", b"\xff\xfe"),
        ("manifest.json", b"[" * 9999), ("scenario.yaml", b"a: [1"), ("scenario.yaml", b"\xff"),
        ("steps.parquet", b"PAR1"), ("steps.parquet", b""),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(tmp_path: Path, synthetic: ModuleType, name: str, content: bytes) -> None:
    written(tmp_path / "run", synthetic)
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        _ = store.read_run(tmp_path / "run").steps
    assert name in str(caught.value)


def test_large_files_are_not_read(
    tmp_path: Path, synthetic: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "run", synthetic)
    monkeypatch.setattr(tables, "MAX_TABLE_BYTES", 100)
    with pytest.raises(InputError, match="at most 100 bytes"):
        _ = store.read_run(tmp_path / "run").steps
    with (tmp_path / "run" / "summary.json").open("ab") as file:
        os.truncate(file.fileno(), 10**9)  # sparse: takes no room
    with pytest.raises(InputError, match="at most"):
        store.read_run(tmp_path / "run")


def test_clashing_runs_of_two_directories_are_named_after_them(
    tmp_path: Path, synthetic: ModuleType, study_at: Callable[..., list[Run]]
) -> None:
    written(tmp_path / "before", synthetic)
    written(tmp_path / "after", synthetic)
    paths = [tmp_path / "before", tmp_path / "after"]
    assert [run.variant for run in store.collect(paths)] == ["before", "after"]
    study_at(tmp_path / "study", seeds=(1,), steps=3)
    both = store.collect([tmp_path / "before", tmp_path / "study"])
    assert [run.variant for run in both] == ["before", "study/sync", "study/local", "study/gossip"]


@given(st.text(max_size=300))
def test_any_name_is_one_component_of_a_path(name: str) -> None:
    made = store.file_name(name)
    assert made not in ("", ".", "..")
    assert not set("/\\\0") & set(made)
    assert len(made) <= 140
    assert (Path("/root") / made).resolve().parent == Path("/root").resolve()


@given(st.text(max_size=20), st.text(max_size=20))
def test_different_names_get_different_components(a: str, b: str) -> None:
    assert (store.file_name(a) == store.file_name(b)) == (a == b)


def test_the_hash_sees_every_value_and_no_order() -> None:
    assert scenario_hash({"a": 1, "b": [1, 2]}) == scenario_hash({"b": [1, 2], "a": 1})
    assert scenario_hash({"a": 1, "b": [1, 2]}) != scenario_hash({"a": 1, "b": [2, 1]})
    assert scenario_hash({"a": 1}) != scenario_hash({"a": 1.5})


def test_tables_must_be_complete_and_even(synthetic: ModuleType) -> None:
    good = synthetic.make_result()
    with pytest.raises(ValueError, match="steps lacks staleness"):
        Result(
            good.summary, steps={name: good.steps[name] for name in COLUMNS["steps"] if name != "staleness"}
        )
    with pytest.raises(ValueError, match="differ in length"):
        Result(good.summary, steps={**good.steps, "worker": np.zeros(3)})
