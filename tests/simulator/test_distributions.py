"""Distributions: the stated mean holds, quantiles rise, one worker and a vector draw the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from scipy import integrate, stats

from simulator.distributions import Distribution, Empirical
from simulator.streams import Draws

ADAPTER: TypeAdapter[Any] = TypeAdapter(Distribution)
SMOOTH = [
    {"kind": "lognormal", "mean": 1.7, "sigma": 0.8},
    {"kind": "lognormal", "mean": 0.2, "sigma": 0.0},
    {"kind": "gamma", "mean": 2.5, "cv": 0.3},
    {"kind": "gamma", "mean": 1.0, "cv": 1.6},
    {"kind": "pareto", "mean": 3.0, "alpha": 2.5},
    {"kind": "weibull", "mean": 1.2, "shape": 0.7},
    {"kind": "weibull", "mean": 1.2, "shape": 4.0},
    {"kind": "exponential", "mean": 0.4},
    {"kind": "constant", "value": 5.0},
]
STEPPED = [{"kind": "two_point", "p": 0.15, "low": 1.0, "high": 4.0}]


def name(spec: dict[str, Any]) -> str:
    return "-".join(str(value) for value in spec.values())


@pytest.mark.parametrize("spec", SMOOTH, ids=name)
def test_mean_by_quadrature(spec: dict[str, Any]) -> None:
    """E[X] is the integral of the quantile over (0, 1); with u = Phi(z) it is smooth, tails and all."""
    distribution = ADAPTER.validate_python(spec)

    def weighted(z: float) -> float:
        u = np.array([stats.norm.cdf(z)])
        return float(distribution.quantile(u)[0] * stats.norm.pdf(z))

    mean, _ = integrate.quad(weighted, -8, 8, limit=400)
    tail = 2e-3 if spec["kind"] == "pareto" else 1e-6  # what lies above z = 8 or below -8
    assert mean == pytest.approx(distribution.mean, rel=tail)


@pytest.mark.parametrize("spec", [*SMOOTH, *STEPPED], ids=name)
def test_mean_of_draws(spec: dict[str, Any]) -> None:
    distribution = ADAPTER.validate_python(spec)
    values = distribution.quantile(Draws(7).block("test", 0, 400_000))
    assert values.min() > 0
    assert values.mean() == pytest.approx(distribution.mean, rel=0.01)


@pytest.mark.parametrize(
    ("spec", "frozen"),
    [
        ({"kind": "lognormal", "mean": 1.7, "sigma": 0.8}, stats.lognorm(0.8, scale=1.7 * np.exp(-0.32))),
        ({"kind": "gamma", "mean": 2.5, "cv": 0.5}, stats.gamma(4, scale=2.5 / 4)),
        ({"kind": "pareto", "mean": 3.0, "alpha": 2.5}, stats.pareto(2.5, scale=3.0 * 1.5 / 2.5)),
        ({"kind": "weibull", "mean": 1.0, "shape": 1.0}, stats.expon()),
        ({"kind": "exponential", "mean": 0.4}, stats.expon(scale=0.4)),
    ],
)
def test_quantiles_are_those_of_scipy(spec: dict[str, Any], frozen: Any) -> None:
    u = np.linspace(1e-6, 1 - 1e-6, 999)
    assert ADAPTER.validate_python(spec).quantile(u) == pytest.approx(frozen.ppf(u), rel=1e-9)


@pytest.mark.parametrize("spec", [*SMOOTH, *STEPPED], ids=name)
def test_quantiles_rise_and_do_not_depend_on_their_neighbours(spec: dict[str, Any]) -> None:
    distribution = ADAPTER.validate_python(spec)
    u = np.sort(Draws(3).block("test", 0, 5_001))
    values = distribution.quantile(u)
    assert (np.diff(values) >= 0).all()
    alone = np.concatenate([distribution.quantile(u[i : i + 1]) for i in range(0, len(u), 7)])
    assert np.array_equal(alone, values[::7])
    assert np.array_equal(distribution.quantile(u[3:]), values[3:])


def test_maximum_of_exponentials_at_a_barrier() -> None:
    """The expected maximum of n exponentials of mean 1 is the harmonic number H_n."""
    exponential = ADAPTER.validate_python({"kind": "exponential", "mean": 1.0})
    draws, n, steps = Draws(11), 64, 4_000
    longest = [exponential.quantile(draws.block("step", k, n)).max() for k in range(steps)]
    expected = sum(1 / k for k in range(1, n + 1))
    error = np.sqrt(sum(1 / k**2 for k in range(1, n + 1)) / steps)  # variance of the maximum
    assert abs(np.mean(longest) - expected) < 4 * error


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40))
def test_empirical_draws_are_the_file_and_keep_its_mean(tmp_path_factory: Any, values: list[float]) -> None:
    file = tmp_path_factory.mktemp("empirical") / "factors.csv"
    file.write_text("factor\n" + "\n".join(map(repr, values)) + "\n")
    distribution = Empirical(file=str(file))
    k = len(values)
    assert distribution.quantile((np.arange(k) + 0.5) / k).tolist() == sorted(values)
    assert distribution.mean == pytest.approx(np.mean(values))
    assert distribution.quantile(np.array([1.0]))[0] == max(values)


def test_empirical_lists_and_folders(tmp_path: Path) -> None:
    (tmp_path / "factors.yaml").write_text("# measured\n[1.0, 2, 1.5]\n")
    (tmp_path / "factors.json").write_text("[1.0, 2, 1.5]")
    for file in ("factors.yaml", "factors.json"):
        given_ = {"kind": "empirical", "file": file}
        distribution = ADAPTER.validate_python(given_, context={"folder": tmp_path})
        assert distribution.values.tolist() == [1.0, 1.5, 2.0]
        assert distribution.file == str(tmp_path / file)
        assert ADAPTER.validate_python(ADAPTER.dump_python(distribution, mode="json")) == distribution


@pytest.mark.parametrize(
    ("name_", "text", "said"),
    [
        ("a.csv", "1.0\nx\n", ":2: found 'x', expected one number a line"),
        ("a.csv", "1.0,2.0\n", ":1: found '1.0,2.0', expected one number a line"),
        ("a.csv", "factor\n", "holds no values"),
        ("a.csv", "1\n-1\n", ":2: found -1.0, expected a positive number"),
        ("a.csv", "1\nnan\n", "expected a positive number"),
        ("a.yaml", "{a: 1}", "expected a list of numbers"),
        ("a.yaml", "[1, true]", "entry 1"),
        ("a.yaml", "[1, 2", "expected YAML"),
        ("a.json", '["!!python/object:os.system"]', "entry 0"),
    ],
)
def test_empirical_files_that_are_wrong(tmp_path: Path, name_: str, text: str, said: str) -> None:
    (tmp_path / name_).write_text(text)
    with pytest.raises(ValidationError, match=said.replace("[", r"\[").replace(".", r"\.")):
        Empirical(file=str(tmp_path / name_))
    with pytest.raises(ValidationError, match="there is no file"):
        Empirical(file=str(tmp_path / "none.csv"))


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "lognormal", "mean": 0, "sigma": 0.1},
        {"kind": "lognormal", "mean": 1, "sigma": -0.1},
        {"kind": "pareto", "mean": 1, "alpha": 1.0},
        {"kind": "two_point", "p": 1.5, "low": 1, "high": 2},
        {"kind": "two_point", "p": 0.5, "low": 3, "high": 2},
        {"kind": "constant", "value": 0},
        {"kind": "constant", "value": 1, "mean": 1},
        {"kind": "normal", "mean": 1},
        {"kind": "exponential", "mean": float("inf")},
    ],
)
def test_wrong_parameters_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(spec)
