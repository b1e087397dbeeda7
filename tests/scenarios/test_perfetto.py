"""The trace: whole JSON, slices of a track never overlap, counters integrate to bytes, sampling is said."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios import perfetto, trace_events
from simulator.result import Coded, Result


def trace(result: Result, path: Path) -> dict[str, Any]:
    perfetto.write_trace(result, path, title="t")
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


def of_kind(loaded: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in loaded["traceEvents"] if event["ph"] == phase]


def names(loaded: dict[str, Any], kind: str) -> dict[tuple[int, int], str]:
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in of_kind(loaded, "M") if e["name"] == kind}


def slices_by_track(loaded: dict[str, Any]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Begin and end in nanoseconds."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in of_kind(loaded, "X"):
        begin = round(event["ts"] * 1000)
        tracks.setdefault((event["pid"], event["tid"]), []).append(
            (begin, begin + round(event["dur"] * 1000))
        )
    return {track: sorted(slices) for track, slices in tracks.items()}


def assert_no_overlap(loaded: dict[str, Any]) -> None:
    for track, slices in slices_by_track(loaded).items():
        for (_, end), (begin, _) in pairwise(slices):
            assert end <= begin, track


def test_every_span_is_a_slice_of_its_worker(tmp_path: Path, synthetic: ModuleType) -> None:
    result = synthetic.make_result(workers=6, steps=10)
    loaded = trace(result, tmp_path / "t.gz")
    hosts, workers = names(loaded, "process_name"), names(loaded, "thread_name")
    slices = [event for event in of_kind(loaded, "X") if event["pid"] >= trace_events.HOSTS]
    assert len(slices) == len(result.spans["start_s"])
    assert {hosts[event["pid"], 0] for event in slices} == {"h0", "h1"}
    assert {workers[event["pid"], event["tid"]].split(" (")[0] for event in slices} == {
        f"worker {rank}" for rank in range(6)
    }
    whole = sum(event["dur"] for event in slices) / 1e6
    assert whole == pytest.approx(float((result.spans["end_s"] - result.spans["start_s"]).sum()), rel=1e-6)
    assert_no_overlap(loaded)
    assert loaded["otherData"] == {"title": "t", "shows": "everything"}


def test_overlapped_spans_lie_on_lanes_of_their_own(tmp_path: Path, synthetic: ModuleType) -> None:
    result = synthetic.make_result(workers=3, steps=5)
    count = 40
    random = np.random.default_rng(0)
    start = random.uniform(0, 1, count)
    result.spans = {
        "worker": np.sort(random.integers(0, 3, count)),
        "kind": Coded(np.ones(count, dtype=np.int8), ("compute", "communication")),
        "name": Coded(np.zeros(count, dtype=np.int8), ("bucket",)),
        "start_s": start,
        "end_s": start + random.uniform(0, 0.5, count),
        "step": np.ones(count, dtype=np.int32),
        "size_bytes": np.ones(count),
        "peer": np.full(count, -1),
        "hidden": random.random(count) < 0.5,
    }
    loaded = trace(result, tmp_path / "t.gz")
    assert_no_overlap(loaded)
    slices = [event for event in of_kind(loaded, "X") if event["name"] == "bucket"]
    assert len(slices) == count
    lanes = names(loaded, "thread_name")
    assert all((event["pid"], event["tid"]) in lanes for event in slices)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 20), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_lanes_never_overlap_and_shown_slices_that_fit_stay_on_the_first(
    rows: list[tuple[int, int, int, bool]],
) -> None:
    rows = sorted(rows, key=lambda row: (row[0], row[1], -row[2]))
    group, begin, length, hidden = (np.array(column) for column in zip(*rows, strict=True))
    end = begin + length
    lanes = trace_events.lanes_beside(group, begin, end, hidden.astype(bool))
    for one in set(zip(group.tolist(), lanes.tolist(), strict=True)):
        mine = [(b, e) for g, lane, b, e in zip(group, lanes, begin, end, strict=True) if (g, lane) == one]
        assert all(e <= b for (_, e), (b, _) in pairwise(mine))
    assert not (lanes[hidden.astype(bool)] == 0).any()
    if not hidden.any() and len(set(group.tolist())) == len(group):
        assert not lanes.any()


def test_a_message_is_an_arrow_from_its_sender_to_its_receiver(tmp_path: Path, synthetic: ModuleType) -> None:
    result = synthetic.make_result(workers=4, steps=6)
    loaded = trace(result, tmp_path / "t.gz")
    begins, ends = ({e["id"]: e for e in of_kind(loaded, phase)} for phase in "sf")
    assert begins.keys() == ends.keys()
    assert len(begins) == 3, "every other transfer of the made-up run is a message"
    for number, event in begins.items():
        assert (event["tid"], ends[number]["tid"]) == (1, 2)
        assert event["ts"] == pytest.approx(result.transfers["begin_s"][number] * 1e6, abs=1e-3)
        assert ends[number]["bp"] == "e"
        covering = [
            e for e in of_kind(loaded, "X")
            if (e["pid"], e["tid"]) == (ends[number]["pid"], 2)
            and e["ts"] <= ends[number]["ts"] < e["ts"] + e["dur"]
        ]  # fmt: skip
        assert covering, "an arrow must end within a slice, else the viewer drops it"


def test_messages_of_a_server_are_slices_of_its_own_with_arrows(
    tmp_path: Path, synthetic: ModuleType
) -> None:
    result = synthetic.make_result(workers=4, steps=6)
    result.transfers = {
        **result.transfers,
        "src": np.array([0, 1, 2, 4, 4, 4]),
        "dst": np.array([4, 4, 4, 0, 1, 2]),
        "begin_s": np.zeros(6),
        "end_s": np.linspace(0.1, 0.6, 6),
    }
    loaded = trace(result, tmp_path / "t.gz")
    assert names(loaded, "process_name")[trace_events.SERVERS, 0] == "servers: messages"
    slices = [e for e in of_kind(loaded, "X") if e["pid"] == trace_events.SERVERS]
    assert len(slices) == 6
    assert_no_overlap(loaded)
    begins, ends = ({e["id"]: e for e in of_kind(loaded, phase)} for phase in "sf")
    assert [begins[row]["pid"] == trace_events.SERVERS for row in range(6)] == [False] * 3 + [True] * 3
    assert [ends[row]["pid"] == trace_events.SERVERS for row in range(6)] == [True] * 3 + [False] * 3
    tracks = {(e["tid"], round(e["dur"])) for e in slices}
    assert tracks >= {(ends[row]["tid"], 100_000 * (row + 1)) for row in range(3)}


def test_a_links_counter_integrates_to_its_bytes(tmp_path: Path, synthetic: ModuleType) -> None:
    result = synthetic.make_result(workers=8, steps=12)
    loaded = trace(result, tmp_path / "t.gz")
    counts = [event for event in of_kind(loaded, "C") if event["name"] == "h0->switch %"]
    area = sum(
        event["args"]["value"] / 100 * (after["ts"] - event["ts"]) / 1e6 for event, after in pairwise(counts)
    )
    carried = result.loads["bytes"][result.loads["link"] == 0].sum()
    assert area * 2.875e9 == pytest.approx(carried, rel=1e-3)
    assert counts[-1]["args"]["value"] == 0


def test_a_big_run_is_sampled_and_says_so(
    tmp_path: Path, synthetic: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perfetto, "MAX_SPANS", 1000)
    result = synthetic.make_result(workers=100, steps=40)
    loaded = trace(result, tmp_path / "t.gz")
    assert loaded["otherData"]["shows"].startswith("sampled: ")
    assert "of 100 workers" in names(loaded, "process_name")[trace_events.NETWORK, 0]
    shown = [event for event in of_kind(loaded, "X") if event["pid"] >= trace_events.HOSTS]
    assert 0 < len(shown) <= 1001
    ranks = {event["tid"] - 1 for event in shown}
    assert 99 in ranks, "the one that the others wait for is always shown"
    assert of_kind(loaded, "i")


def test_names_are_escaped(tmp_path: Path, synthetic: ModuleType) -> None:
    result = synthetic.make_result(workers=2, steps=2)
    wild = 'a"b\\c</script>\n\x1b'
    result.spans = {**result.spans, "name": Coded(result.spans["name"].codes, (wild, wild, wild))}
    result.workers = {**result.workers, "host": Coded.of([wild, wild])}
    loaded = trace(result, tmp_path / "t.gz")
    assert wild in names(loaded, "process_name").values()
    assert {e["name"] for e in of_kind(loaded, "X") if e["pid"] >= trace_events.HOSTS} == {wild}


def test_times_far_from_zero_keep_their_nanoseconds(tmp_path: Path, synthetic: ModuleType) -> None:
    result = synthetic.make_result(workers=2, steps=2)
    result.spans = {
        **result.spans,
        "start_s": result.spans["start_s"] + 1e6,
        "end_s": result.spans["end_s"] + 1e6,
    }
    assert_no_overlap(trace(result, tmp_path / "t.gz"))


def test_a_trace_needs_spans(tmp_path: Path, synthetic: ModuleType) -> None:
    result = synthetic.make_result()
    result.spans = None
    with pytest.raises(ValueError, match="needs the spans"):
        perfetto.write_trace(result, tmp_path / "t.gz")
