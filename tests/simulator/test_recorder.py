"""The recorder: sums, cuts, tables and the digest, whatever the order, the level and the engine."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from simulator import step_times
from simulator.clock import Clock
from simulator.digest import finish, span_words
from simulator.recorder import COMMUNICATION, COMPUTE, IDLE, WAITING, Recorder
from simulator.step_times import StepTimes

LINKS = np.array([3, 5])


def clock_at(time: float) -> Clock:
    clock = Clock()
    clock.advance(time)
    return clock


def recorder(workers: int = 2, now: float = 10.0, **fields: Any) -> Recorder:
    made = Recorder(workers, clock_at(now), **fields)
    for name in ("gradient", "wait", "all_reduce"):
        made.name(name)
    return made


def some_spans(count: int = 200, workers: int = 3) -> list[tuple[Any, ...]]:
    """Spans of some workers, one after the other, as arguments of `Recorder.span`."""
    r, at, rows = random.Random(1), [0.0] * workers, []
    for number in range(count):
        worker, start = number % workers, at[number % workers]
        at[worker] = start + r.choice([0.0, r.random() / 50])
        kind = r.choice([COMPUTE, COMMUNICATION, WAITING])
        rows.append((worker, kind, start, at[worker], number, kind, r.random() * 1e6, -1, False))
    return rows


def close(made: Recorder, cut: float = 10.0) -> str:
    made.close(cut)
    made.idle()
    return finish(made.words, LINKS)


# the digest


def test_the_digest_does_not_depend_on_order_or_level():
    digests = set()
    rows = some_spans()
    for level in ("summary", "steps", "all"):
        for seed in range(3):
            made = recorder(3, level=level)
            for row in random.Random(seed).sample(rows, len(rows)):
                made.span(*row)
            digests.add(close(made))
    assert len(digests) == 1


def test_the_digest_does_not_depend_on_when_spans_are_taken_in(monkeypatch):
    """Buffers are emptied as they fill; vectors go in at once if nothing can undo them, else later."""
    rows = some_spans(300, workers=3)
    whole, piecewise = recorder(3), recorder(3, now=0.0)
    piecewise._flush_at = 7
    for row in rows:
        whole.span(*row)
        piecewise.clock.advance(max(piecewise.clock.now, row[2]))
        piecewise.span(*row)
    assert close(piecewise) == close(whole)
    np.testing.assert_array_equal(piecewise.seconds, whole.seconds)
    for column, values in whole.span_table().items():
        other = piecewise.span_table()[column]
        np.testing.assert_array_equal(getattr(other, "codes", other), getattr(values, "codes", values))


@pytest.mark.parametrize("ahead", [True, False])
def test_vectors_are_the_same_as_rows(ahead):
    """A cohort's spans and steps against each worker's own."""
    n, r = 5, np.random.default_rng(2)
    rows, vectors = recorder(n), recorder(n, ahead=ahead, now=10.0 if ahead else 0.0)
    t = np.zeros(n)
    for step in range(1, 8):
        end = t + r.random(n) * (r.random(n) < 0.8)
        size = r.random(n) * 1e3
        vectors.spans(COMMUNICATION, t, end, step, 2, size, hidden=step % 2 == 0)
        columns = {"start": t, "end": end, "compute": end - t, "communication": size * 0, "waiting": size * 0}
        columns |= {"bubble": size * 0, "bytes_sent": size, "staleness": np.full(n, np.nan)}
        vectors.steps(step, columns, samples=32, wasted=np.arange(n))
        for worker in range(n):
            span = (worker, COMMUNICATION, t[worker], end[worker], step, 2, size[worker], -1, step % 2 == 0)
            rows.span(*span)
            own = (c[worker] for c in columns.values())
            rows.step(*own, worker, step, 32, worker)
        t = end
    if not ahead:
        vectors.clock.advance(10.0)
    assert close(vectors) == close(rows)
    assert vectors.steps_done.tolist() == rows.steps_done.tolist() == [7] * n
    assert vectors.wasted == rows.wasted == 7 * sum(range(n))
    np.testing.assert_allclose(vectors.bytes_sent, rows.bytes_sent, rtol=1e-12)
    np.testing.assert_allclose(vectors.seconds, rows.seconds, atol=1e-12)
    for one, other in ((vectors.span_table(), rows.span_table()), (vectors.step_table(), rows.step_table())):
        for column, values in one.items():
            same = other[column]
            np.testing.assert_array_equal(getattr(same, "codes", same), getattr(values, "codes", values))


SPAN = {
    "worker": 0,
    "kind": COMPUTE,
    "start": 1.0,
    "end": 2.0,
    "step": 1,
    "name": 0,
    "size": 8.0,
    "hidden": False,
}


def digest_of(changed: dict[str, Any]) -> str:
    span = SPAN | changed
    made = recorder()
    made.span(
        span["worker"], span["kind"], span["start"], span["end"], span["step"], span["name"], span["size"],
        span.get("peer", -1), span.get("hidden", False),
    )  # fmt: skip
    return close(made)


@pytest.mark.parametrize(
    "change",
    [
        {"worker": 1}, {"kind": WAITING}, {"hidden": True}, {"start": np.nextafter(1.0, 2.0)},
        {"end": np.nextafter(2.0, 1.0)}, {"size": np.nextafter(8.0, 9.0)}, {"size": 0.0},
    ],
    ids=repr,
)  # fmt: skip
def test_every_part_of_a_span_counts(change):
    assert digest_of(change) != digest_of({})


@pytest.mark.parametrize("change", [{"step": 2}, {"name": 1}, {"peer": 1}], ids=repr)
def test_what_is_only_told_does_not_count(change):
    assert digest_of(change) == digest_of({})


def test_the_digest_knows_workers_apart_and_counts_links():
    words = np.array([1, 2], dtype=np.uint64)
    assert finish(words, LINKS) != finish(words[::-1].copy(), LINKS)
    assert finish(words, LINKS) != finish(words, LINKS[::-1].copy())
    assert finish(words, LINKS) == finish(words.copy(), LINKS.astype(np.int32))


def test_two_spans_do_not_cancel():
    """A sum of words, not an exclusive or: the same span twice is not nothing."""
    one = span_words(COMPUTE, np.array([1.0]), np.array([2.0]), np.array([0.0]))
    made = recorder()
    for _ in range(2):
        made.span(0, COMPUTE, 1.0, 2.0, 1, 0)
    made.close(10.0)
    assert made.words[0] == one[0] + one[0] != 0


# the end of a run


def test_what_is_under_way_is_cut_at_the_last_finished_end():
    """Finished by the cut at 10: until 4 and until 6. Under way: from 6 (worker 0) and 5 (worker 1)."""
    made = recorder(2)
    made.span(0, COMPUTE, 0.0, 6.0, 1, 0)
    made.span(1, COMPUTE, 0.0, 4.0, 1, 0)
    made.span(1, WAITING, 4.0, 5.0, 1, 1)
    made.span(0, COMMUNICATION, 6.0, 11.0, 1, 2, 100.0)
    made.span(1, COMMUNICATION, 5.0, 11.0, 1, 2, 100.0)
    digest = close(made)
    assert made.last_end == 6.0
    np.testing.assert_allclose(made.seconds[[COMPUTE, COMMUNICATION, WAITING]], [[6, 4], [0, 1], [0, 1]])
    assert made.bytes_sent.tolist() == [0, 0]  # nothing has been sent whole
    assert made.span_table()["end_s"].max() == 6.0
    assert (made.span_table()["size_bytes"] == 0).all()
    finished = recorder(2)
    finished.span(0, COMPUTE, 0.0, 6.0, 1, 0)
    finished.span(1, COMPUTE, 0.0, 4.0, 1, 0)
    finished.span(1, WAITING, 4.0, 5.0, 1, 1)
    assert close(finished) == digest  # only finished spans are in it


def test_who_has_finished_is_idle():
    made = recorder(2)
    made.span(0, COMPUTE, 0.0, 6.0, 1, 0)
    made.span(1, COMPUTE, 0.0, 2.0, 1, 0)
    close(made)
    assert made.seconds[IDLE].tolist() == [0.0, 4.0]
    table = made.span_table()
    idle = table["kind"].texts() == "idle"
    assert (table["worker"][idle], table["start_s"][idle], table["end_s"][idle]) == (1, 2.0, 6.0)


def test_overlapping_spans_of_one_worker_are_a_fault():
    made = recorder(1)
    made.span(0, COMPUTE, 0.0, 2.0, 1, 0)
    made.span(0, WAITING, 1.0, 3.0, 1, 1)
    made.close(10.0)
    with pytest.raises(AssertionError, match="overlapping spans"):
        made.idle()


def test_hidden_spans_take_no_time_but_their_bytes_count():
    made = recorder(1)
    made.span(0, COMPUTE, 0.0, 2.0, 1, 0)
    made.span(0, COMMUNICATION, 0.5, 1.5, 1, 2, 64.0, -1, True)
    made.span(0, COMMUNICATION, 2.0, 2.0, 1, 2, 36.0)  # of a worker that came when all was over
    close(made)
    assert made.seconds[:, 0].tolist() == [2.0] + [0.0] * 7
    assert made.bytes_sent.tolist() == [100.0]
    assert len(made.span_table()["worker"]) == 2


def test_a_step_counts_if_it_ends_by_the_cut():
    made = recorder(1, now=5.0)
    for step, end in ((1, 2.0), (2, 5.0), (3, 5.5)):
        made.step(end - 1, end, 1.0, 0.0, 0.0, 0.0, 8.0, float(step), 0, step, 32, 0)
    assert made.counts() == (2, 64)
    made.close(5.0)
    assert (made.steps_done[0], made.samples[0]) == (2, 64)
    assert (made.staleness_sum, made.staleness_max, made.staleness_count) == (3.0, 2.0, 2)
    assert made.step_table()["step"].tolist() == [1, 2]


def test_a_vector_of_steps_counts_those_that_have_ended():
    made = recorder(3, now=5.0)
    zeros = np.zeros(3)
    columns = {
        name: zeros for name in ("start", "compute", "communication", "waiting", "bubble", "bytes_sent")
    }
    made.steps(1, columns | {"end": np.array([4.0, 5.0, 6.0]), "staleness": zeros}, samples=10)
    assert made.counts() == (2, 20)
    made.close(5.0)
    assert made.steps_done.tolist() == [1, 1, 0]


def test_levels_keep_what_they_say():
    for level, tables in (("summary", (False, False)), ("steps", (True, False)), ("all", (True, True))):
        made = recorder(1, level=level)
        made.span(0, COMPUTE, 0.0, 1.0, 1, 0)
        made.step(0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 8.0, np.nan, 0, 1, 32, 0)
        close(made)
        assert (made.step_table() is not None, made.span_table() is not None) == tables
        assert made.seconds[COMPUTE, 0] == 1.0


def test_an_empty_run():
    made = recorder(2)
    close(made)
    assert made.last_end == 0.0
    assert len(made.span_table()["worker"]) == len(made.step_table()["worker"]) == 0


# step times


def test_quantiles_from_bins_are_close(monkeypatch):
    """Exact up to a million intervals; beyond that within a bin of 1e-3, relative."""
    values = np.random.default_rng(3).lognormal(0.0, 1.0, 20_000)
    exact, binned = StepTimes(), StepTimes()
    exact.add(values)
    monkeypatch.setattr(step_times, "EXACT", 5_000)
    for part in np.split(values, 40):
        binned.add(part)
    one, other = exact.summary(), binned.summary()
    assert one["p50"] == np.quantile(values, 0.5)
    assert other["mean"] == pytest.approx(one["mean"], rel=1e-12)
    for quantile in ("p50", "p95"):
        assert one[quantile] != other[quantile] == pytest.approx(one[quantile], rel=1e-3)


def test_no_intervals_have_no_quantiles():
    assert StepTimes().summary() == {"mean": None, "p50": None, "p95": None}


def test_steps_of_no_length():
    times = StepTimes()
    times.add(np.zeros(4))
    assert times.summary() == {"mean": 0.0, "p50": 0.0, "p95": 0.0}
