"""Paired differences under common random numbers: against scipy, against numbers by hand, at the edges."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scenarios.compare import by_variant, compare, difference, interval, metric_names, pick, ratio
from scenarios.store import Run
from simulator.errors import InputError

Made = Callable[..., Run]
values = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=8)


@given(values)
def test_the_interval_of_a_mean_is_students(numbers: list[float]) -> None:
    found = interval(numbers)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.mean <= found.high
    error = stats.sem(numbers)
    if error > 1e-9 * found.mean:
        low, high = stats.t.interval(0.95, len(numbers) - 1, loc=np.mean(numbers), scale=error)
        assert found.low == pytest.approx(low, rel=1e-9, abs=1e-9 * error)
        assert found.high == pytest.approx(high, rel=1e-9, abs=1e-9 * error)


def test_a_paired_difference_is_that_of_scipy() -> None:
    ours, theirs = [4.1, 4.9, 4.4, 5.2], [9.7, 11.0, 10.1, 11.3]
    found = difference(dict(enumerate(ours)), dict(enumerate(theirs)))
    assert found is not None
    gap, paired = found
    expected = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert paired
    assert gap.mean == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert (gap.low, gap.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_without_common_seeds_the_interval_is_welchs() -> None:
    ours, theirs = [4.1, 4.9, 4.4], [9.7, 11.0, 10.1, 12.0]
    found = difference(dict(enumerate(ours)), {10 + seed: value for seed, value in enumerate(theirs)})
    assert found is not None
    gap, paired = found
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    assert not paired
    assert (gap.low, gap.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_pairing_removes_what_seeds_have_in_common() -> None:
    hard = {1: 10.0, 2: 20.0, 3: 40.0}  # a seed with more stragglers is worse for both
    half = {seed: value / 2 + 0.01 * seed for seed, value in hard.items()}
    paired = ratio(half, hard)
    unpaired = ratio(half, {seed + 10: value for seed, value in hard.items()})
    assert paired is not None
    assert unpaired is not None
    assert paired.ends == [pytest.approx(0.501, abs=2e-3), pytest.approx(0.501, abs=2e-3)]
    assert unpaired.ends is not None
    assert unpaired.ends[1] / unpaired.ends[0] > 10


@given(values, st.floats(0.01, 100))
def test_a_factor_and_its_inverse_have_inverse_intervals(numbers: list[float], k: float) -> None:
    ours = dict(enumerate(numbers))
    theirs = {seed: k * value**0.9 for seed, value in ours.items()}
    one, other = ratio(ours, theirs), ratio(theirs, ours)
    assert one is not None
    assert other is not None
    assert one.mean * other.mean == pytest.approx(1)
    if one.ends and other.ends and other.ends[0] > 1e-300:
        assert one.ends[1] * other.ends[0] == pytest.approx(1)


def test_one_seed_has_a_ratio_and_no_interval() -> None:
    found = ratio({1: 4.0}, {1: 10.0})
    assert found is not None
    assert found.mean == pytest.approx(0.4)
    assert found.ends is None


def test_an_interval_beyond_all_floats_is_none() -> None:
    found = ratio({1: 1e-200, 2: 1e200}, {1: 1e200, 2: 1e-200})
    assert found is not None
    assert found.ends is None


@pytest.mark.parametrize("bad", [None, 0.0, -1.0])
def test_there_is_no_ratio_of_what_is_missing_or_not_positive(bad: float | None) -> None:
    assert ratio({1: bad, 2: 3.0}, {1: 2.0, 2: 3.0}) is None
    assert ratio({1: 2.0, 2: 3.0}, {1: bad, 2: 3.0}) is None


def row(compared: dict[str, Any], variant: str, metric: str) -> dict[str, Any]:
    return next(row for row in compared["rows"] if (row["variant"], row["metric"]) == (variant, metric))


def test_rows_have_the_keys_of_the_contract(made: Made) -> None:
    runs = [made("sync", 1, target_s=10.0), made("gossip", 1, target_s=4.0)]
    compared = compare(runs)
    assert compared["baseline"] == "sync"
    contract = {"variant", "metric", "mean", "ci_low", "ci_high", "ratio", "ratio_ci", "seeds", "paired"}
    assert all(contract <= row.keys() for row in compared["rows"])
    found = row(compared, "gossip", "time_to_target_s")
    assert found["mean"] == 4.0
    assert found["ratio"] == pytest.approx(0.4)
    assert found["difference"] == -6.0
    assert (found["seeds"], found["paired"], found["ratio_ci"]) == (1, True, None)
    json.dumps(compared, allow_nan=False)


def test_never_is_not_a_number(made: Made) -> None:
    runs = [made("sync", seed, target_s=10.0 + seed) for seed in (1, 2, 3)]
    runs += [made("server", seed, target_s=None if seed == 2 else 15.0) for seed in (1, 2, 3)]
    found = row(compare(runs), "server", "time_to_target_s")
    assert found["mean"] is None
    assert found["ratio"] is None
    assert found["difference"] is None
    assert found["never"] == 1
    assert row(compare(runs), "sync", "time_to_target_s")["mean"] == 12.0


def test_seeds_pair_by_number_and_not_by_order(made: Made) -> None:
    runs = [made("sync", seed, target_s=10.0 * seed) for seed in (1, 2, 3)]
    runs += [made("gossip", seed, target_s=5.0 * seed) for seed in (3, 1, 2)]
    found = row(compare(runs), "gossip", "time_to_target_s")
    assert found["ratio_ci"] == [pytest.approx(0.5), pytest.approx(0.5)]


def test_a_baseline_can_be_chosen(made: Made) -> None:
    runs = [made("sync", target_s=10.0), made("gossip", target_s=4.0)]
    compared = compare(runs, baseline="gossip", metrics=["time_to_target_s"])
    assert [row["variant"] for row in compared["rows"]] == ["gossip", "sync"]
    assert row(compared, "sync", "time_to_target_s")["ratio"] == pytest.approx(2.5)


def test_wrong_names_are_wrong_input(made: Made) -> None:
    runs = [made("sync"), made("gossip")]
    with pytest.raises(InputError, match="did you mean 'sync'"):
        compare(runs, baseline="synk")
    with pytest.raises(InputError, match=r"did you mean 'step_time_s\.mean'"):
        compare(runs, metrics=["step_time_s.men"])


def test_timing_only_runs_compare_without_a_target(made: Made) -> None:
    metrics = {row["metric"] for row in compare([made("a", learns=False), made("b", learns=False)])["rows"]}
    assert "samples_per_s" in metrics
    assert not metrics & {"time_to_target_s", "final_loss"}


def test_a_run_given_twice_is_wrong_input(made: Made) -> None:
    with pytest.raises(InputError, match="two runs of seed 1"):
        by_variant([made("sync", 1), made("sync", 1)])


def test_numbers_of_a_summary_are_found_by_dotted_names() -> None:
    summary = {"a": 1, "b": {"c": 2.5, "d": None}, "t": "text", "n": None, "yes": True, "bad": math.inf}
    assert metric_names(summary) == ["a", "b.c", "b.d", "n", "bad"]
    assert pick(summary, "b.c") == 2.5
    assert [pick(summary, name) for name in ("b", "t", "n", "yes", "bad", "b.x.y")] == [None] * 6
