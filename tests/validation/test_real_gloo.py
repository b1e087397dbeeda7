"""Law 5: a simulated run and the same method run for real by gloo processes end with the same parameters.

Synchronous methods run freely. Asynchronous ones replay the order of events that the simulation recorded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from scenarios.build import job_of
from scenarios.loading import load
from scenarios.schema import Scenario
from simulator.engine import Engine
from simulator.maths.dense import Dense
from simulator.problems import DigitsMlp
from simulator.problems.digits import digits
from simulator.result import Coded, Result
from simulator.run import EngineKind, start_cohort, start_workers
from simulator.streams import Draws
from simulator.summary import result_of

N, STEPS = 4, 20
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
METHODS = {
    "sync_sgd": "{kind: sync_sgd, bucket_bytes: 10 MB}",
    "local_sgd": "{kind: local_sgd, h: 8}",
    "dpsgd": "{kind: dpsgd, order: step_then_mix}",
    "parameter_server": "{kind: parameter_server, bound: none}",
    "ad_psgd": "{kind: ad_psgd}",
}
GOSSIP = {"dpsgd": ["training.gossip={graph: ring}"], "ad_psgd": ["training.gossip={graph: complete}"]}
CASES = [(method, dtype) for method in METHODS for dtype in TOLERANCE]


class Run(NamedTuple):
    """A simulated run: the workers' models (the server's, where there is one), tables, who met whom."""

    models: list[np.ndarray]
    result: Result
    peer: Callable[[int, int], int]


def scenario(method: str, dtype: str) -> Scenario:
    """Four hosts behind a switch, unlike steps and data, a small network that reads digits."""
    momentum = 0.0 if method in ("parameter_server", "ad_psgd") else 0.9
    sets = [
        f"cluster={{topology: {{kind: star, hosts: {N}, link: {{bandwidth: 25 Gbit/s, latency: 2 us}}, host: "
        f"{{kind: cpu_only, devices: {{profile: p100_sxm2, count: 1}}}}}}, placement: {{workers: {N}}}}}",
        f"training.strategy={METHODS[method]}",
        f"training.optimizer={{kind: sgd, lr: 0.1, momentum: {momentum}}}",
        "problem={kind: digits_mlp, hidden: [16], batch: 12, split: {kind: label}}",
        "stragglers=[{where: all, per: step, factor: {kind: lognormal, mean: 1.0, sigma: 0.4}}]",
        f"stop={{steps: {STEPS}}}",
        f"maths={{dtype: {dtype}}}",
        *GOSSIP.get(method, []),
    ]
    return load("quickstart", sets).scenarios[0]


def simulate(one: Scenario, engine: EngineKind) -> Run:
    """The simulated side."""
    torch.set_num_threads(1)
    running = Engine(job_of(one))
    start_cohort(running) if engine == "cohort" else start_workers(running)
    cut = running.run()
    models = [running.model_now()] if running.server is not None else running.models_now()
    if isinstance(models, Dense):
        models = [running.maths.row(models, worker) for worker in range(running.size)]
    assert isinstance(models, list)
    final = [model.data.numpy() for model in models if isinstance(model, Dense)]
    return Run(final, result_of(running, cut), running.draw_peer)


def write_down(one: Scenario, method: str, file: Path, events: list[Any]) -> None:
    """What the real processes need to know of a run."""
    problem, training, draws = one.problem, one.training, Draws(one.seed)
    assert isinstance(problem, DigitsMlp)
    assert training is not None
    batches, optimizer = problem.batches(N, draws), training.optimizer.model_dump()
    config = {
        "method": method,
        "n": N,
        "steps": STEPS,
        "h": 8,
        "dtype": one.maths.dtype,
        "lr": optimizer["lr"],
        "momentum": optimizer["momentum"],
        "sizes": problem.sizes,
        "events": events,
    }
    np.savez(
        file,
        config=json.dumps(config),
        inputs=digits().train,
        labels=digits().train_labels,
        samples=np.stack([[batches.one(worker, draw) for draw in range(STEPS)] for worker in range(N)]),
        start=problem.initial(draws),
    )


def pushes(run: Run) -> list[int]:
    """Whose push the server applied, in order; each was computed on the version pulled after the last."""
    steps = run.result.steps
    assert steps is not None
    order = np.argsort(np.asarray(steps["end_s"]), kind="stable")
    workers, staleness = np.asarray(steps["worker"])[order], np.asarray(steps["staleness"])[order]
    pulled: dict[int, int] = {}
    for applied, (worker, stale) in enumerate(zip(workers.tolist(), staleness.tolist(), strict=True)):
        assert stale == applied - pulled.get(worker, 0)
        pulled[worker] = applied + 1
    return [int(worker) for worker in workers]


def exchanges_and_steps(run: Run) -> list[tuple[str, int, int]]:
    """What happened to the models, in order: exchanges end, gradients are applied.

    At one instant a worker's exchange ends, then its gradient is applied.
    """
    assert run.result.spans is not None
    spans = {key: c.texts() if isinstance(c, Coded) else c for key, c in run.result.spans.items()}
    ended: dict[tuple[int, int], float] = {}
    ready: dict[tuple[int, int], float] = {}
    rows = (spans[key].tolist() for key in ("worker", "step", "name", "end_s"))
    for worker, step, name, end in zip(*rows, strict=True):
        at = (worker, step)
        if name == "average_with":  # in two spans, where its end is not hidden by the gradient
            ended[at] = max(end, ended.get(at, end))
        if name in ("average_with", "gradient"):
            ready[at] = max(end, ready.get(at, end))
    happened = [(time, 0, "average", w, run.peer(w, step)) for (w, step), time in ended.items()]
    happened += [(time, 1, "step", w, -1) for (w, _), time in ready.items()]
    return [(kind, worker, peer) for _, _, kind, worker, peer in sorted(happened)]


@pytest.fixture(scope="module")
def simulated() -> dict[tuple[str, str], Run]:
    """Every case, simulated with a process per worker."""
    return {case: simulate(scenario(*case), "process") for case in CASES}


@pytest.fixture(scope="module")
def real(
    simulated: dict[tuple[str, str], Run], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], list[np.ndarray]]:
    """Every case, really run; what each rank ends with. One set of processes does them all."""
    folder = tmp_path_factory.mktemp("gloo")
    order: dict[str, Callable[[Run], list[Any]]] = {
        "parameter_server": pushes,
        "ad_psgd": exchanges_and_steps,
    }
    files = {case: folder / f"{case[0]}-{case[1]}.npz" for case in CASES}
    for case, file in files.items():
        events = order[case[0]](simulated[case]) if case[0] in order else []
        write_down(scenario(*case), case[0], file, events)
    script = Path(__file__).with_name("real_training.py")
    started = [
        subprocess.Popen([sys.executable, str(script), str(rank), str(N + 1), *map(str, files.values())])
        for rank in range(N + 1)
    ]
    try:
        assert [process.wait(timeout=300) for process in started] == [0] * len(started)
    finally:
        for process in started:
            process.kill()
            process.wait()
    return {
        case: [np.load(file.with_name(f"{file.stem}-{rank}.npy")) for rank in _ranks(case[0])]
        for case, file in files.items()
    }


def _ranks(method: str) -> range:
    return range(N, N + 1) if method == "parameter_server" else range(N)


def assert_same(simulated: list[np.ndarray], real: list[np.ndarray], dtype: str) -> None:
    """Norm-relative."""
    assert len(simulated) == len(real)
    for one, other in zip(simulated, real, strict=True):
        assert one.dtype == other.dtype == np.dtype(dtype)
        assert np.linalg.norm(one - other) <= TOLERANCE[dtype] * np.linalg.norm(other)


@pytest.mark.parametrize(("method", "dtype"), CASES)
def test_same_parameters(
    method: str,
    dtype: str,
    simulated: dict[tuple[str, str], Run],
    real: dict[tuple[str, str], list[np.ndarray]],
) -> None:
    assert_same(simulated[method, dtype].models, real[method, dtype], dtype)


@pytest.mark.parametrize("method", ["sync_sgd", "local_sgd"])
def test_same_parameters_of_a_cohort(method: str, real: dict[tuple[str, str], list[np.ndarray]]) -> None:
    for dtype in TOLERANCE:
        assert_same(simulate(scenario(method, dtype), "cohort").models, real[method, dtype], dtype)


def test_the_runs_are_not_trivial(
    simulated: dict[tuple[str, str], Run], real: dict[tuple[str, str], list[np.ndarray]]
) -> None:
    problem = scenario("sync_sgd", "float64").problem
    assert problem is not None
    start = problem.initial(Draws(scenario("sync_sgd", "float64").seed))
    for method in METHODS:
        models = real[method, "float64"]
        assert np.linalg.norm(models[0] - start) > 0.1 * np.linalg.norm(start)
        alike = all(np.array_equal(models[0], model) for model in models)
        assert alike == (method in ("sync_sgd", "parameter_server"))
    order = pushes(simulated["parameter_server", "float64"])
    assert order != list(range(N)) * STEPS
    assert len(exchanges_and_steps(simulated["ad_psgd", "float64"])) == 2 * N * STEPS
