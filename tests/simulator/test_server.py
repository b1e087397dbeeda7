"""The parameter server as a queue: what is known of queues, and what the bounds of staleness promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.clock import Clock
from simulator.job import Stop
from simulator.problems import Quadratic
from simulator.run import run
from simulator.schedules import Piecewise
from simulator.strategies import ParameterServer
from simulator.strategies.base import Proc, Strategy
from simulator.streams import Draws
from simulator.values import Ghost

S, B, A = 40e6, 1e9, 20e-6  # value, bytes; link, bytes/s; latency host to host, s
SERVICE = S / B
DISCIPLINES = ["fcfs", "processor_sharing", "round_robin", "lock_free"]
LOGNORMAL = {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.5}}


class Clients(Strategy):
    """Each worker computes for its time, pushes a value of its size, and is done."""

    has_server = True
    kind: str = "clients"
    discipline: str = "fcfs"
    arrivals: tuple[float, ...]
    sizes: tuple[float, ...]

    def worker(self, w: Any) -> Proc[None]:
        for _ in w.steps():
            yield from w.charge(self.arrivals[w.rank])
            yield from w.push(Ghost(self.sizes[w.rank]), 0)

    def server(self, s: Any) -> Proc[None]:
        s.publish(s.initial_model())
        while True:
            push = yield from s.next_push()
            s.publish(push.value)


@pytest.fixture
def serve(make_job):
    """Pushes that come at given times: when each one's bytes have left, and when it has begun."""

    def of(
        arrivals: Any, sizes: Any, discipline: str = "fcfs", clock: Clock | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        n = len(arrivals)
        arrivals, sizes = tuple(map(float, arrivals)), tuple(map(float, np.broadcast_to(sizes, n)))
        strategy = Clients(discipline=discipline, arrivals=arrivals, sizes=sizes)
        job = make_job(strategy, n, latency="0 s", stragglers=(), stop=Stop(steps=1))
        spans = run(job, clock=clock).spans
        pushed = spans["kind"].texts() == "communication"
        assert spans["worker"][pushed].tolist() == list(range(n))
        return spans["start_s"][pushed], spans["end_s"][pushed]

    return of


def test_synchronous_pushes_leave_one_after_the_other(serve):
    begun, left = serve([0.0] * 5, S)
    np.testing.assert_allclose(left, SERVICE * np.arange(1, 6), rtol=1e-12)
    np.testing.assert_allclose(begun, SERVICE * np.arange(5), rtol=1e-12)


def test_shared_processor_lets_all_leave_together(serve):
    begun, left = serve([0.0] * 5, S, "processor_sharing")
    np.testing.assert_allclose(left, 5 * SERVICE, rtol=1e-9)
    assert (begun == 0).all()


def test_first_come_first_served_ties_by_rank(serve, shuffled_ties):
    for seed in range(8):
        begun, _ = serve([0.002, 0.001, 0.002, 0.0, 0.002], S, clock=shuffled_ties(seed))
        assert np.argsort(begun).tolist() == [3, 1, 0, 2, 4]


def test_round_robin_waits_for_whose_turn_it_is(serve):
    """The last to come is first in turn, so all others wait for it."""
    begun, _ = serve([1.0, 0.5, 0.0, 0.2], S, "round_robin")
    np.testing.assert_allclose(begun, 1.0 + SERVICE * np.arange(4), rtol=1e-12)


def test_open_poisson_arrivals_wait_as_m_d_1(serve):
    """Mean wait rho S / (2 (1 - rho)) (Pollaczek and Khinchine); each wait as in Lindley's recursion."""
    n, rho = 2000, 0.6
    gaps = -np.log(Draws(7).block("arrivals", 0, n)) * SERVICE / rho
    arrivals = np.cumsum(gaps)
    begun, left = serve(arrivals, S)
    wait = np.zeros(n)
    for k in range(1, n):
        wait[k] = max(0.0, wait[k - 1] + SERVICE - gaps[k])
    np.testing.assert_allclose(begun - arrivals, wait, atol=1e-9)
    np.testing.assert_allclose(left - begun, SERVICE, rtol=1e-9)
    assert wait.mean() == pytest.approx(rho * SERVICE / (2 * (1 - rho)), rel=0.1)


def test_shared_processor_slows_all_jobs_alike(serve):
    """M/G/1 processor sharing: size x takes x / (1 - rho) on average, however sizes are distributed."""
    n, rho = 3000, 0.5
    draws = Draws(5)
    large = draws.block("sizes", 0, n) < 0.2
    service = np.where(large, 3.0, 0.5) * SERVICE  # mean 1 SERVICE
    arrivals = np.cumsum(-np.log(draws.block("arrivals", 0, n)) * SERVICE / rho)
    _, left = serve(arrivals, service * B, "processor_sharing")
    for kind in (large, ~large):
        slowdown = ((left - arrivals)[kind] / service[kind]).mean()
        assert slowdown == pytest.approx(1 / (1 - rho), rel=0.1)


class Rounds(Clients):
    """Each worker pushes at its time and pulls when all pushes are applied."""

    def worker(self, w: Any) -> Proc[None]:
        for _ in w.steps():
            yield from w.charge(self.arrivals[w.rank])
            yield from w.push(Ghost(self.sizes[w.rank]), 0)
            yield from w.pull(0)


@pytest.mark.parametrize("fidelity", ["flows", "bundles", "closed_form"])
@pytest.mark.parametrize("discipline", ["fcfs", "round_robin", "processor_sharing", "lock_free"])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_a_round_through_a_server(make_job, discipline, fidelity, n):
    """`schema.md` 7, server style from one start: 2a + 2nS/B; transfers in closed form share nothing."""
    strategy = Rounds(discipline=discipline, arrivals=(0.0,) * n, sizes=(S,) * n)
    found = run(make_job(strategy, n, S, stragglers=(), stop=Stop(steps=1), fidelity=fidelity))
    alone = fidelity == "closed_form" and discipline in ("processor_sharing", "lock_free")
    expected = 2 * A + 2 * (1 if alone else n) * SERVICE
    assert found.summary["simulated_s"] == pytest.approx(expected, rel=1e-9)


def test_rounds_follow_each_other(make_job):
    """Workers pull, compute g and push one behind the other: g + 2a + (n + 1) S/B from round to round."""
    n, g = 3, 0.5
    job = make_job(ParameterServer(bound=0), n, S, seconds=g, stragglers=(), stop=Stop(steps=5))
    found = run(job)
    for worker in range(n):
        ends = found.steps["end_s"][found.steps["worker"] == worker]
        np.testing.assert_allclose(np.diff(ends), g + 2 * A + (n + 1) * SERVICE, rtol=1e-9)
    assert found.summary["rounds"] == 5
    assert found.summary["staleness_max"] == 0


def test_an_exchange_is_one_service(make_job):
    """The server takes nobody between a push and its answer: n workers leave every 2 S/B + a."""
    n = 4
    job = make_job(ParameterServer(), n, S, seconds=1.0, stragglers=(), stop=Stop(steps=1))
    spans = run(job).spans
    exchange = (spans["kind"].texts() == "communication") & (spans["start_s"] > 0.9)
    # The first pulls set the workers S/B apart; the queue behind the first exchange then never empties.
    first = A + SERVICE + 1.0
    ends = first + (2 * SERVICE + A) * np.arange(1, n + 1) + A
    np.testing.assert_allclose(np.sort(spans["end_s"][exchange]), ends, rtol=1e-9)


class Updating(Clients):
    """The server works on each push before it publishes."""

    def server(self, s: Any) -> Proc[None]:
        s.publish(s.initial_model())
        while True:
            push = yield from s.next_push()
            s.publish(s.add(s.initial_model(), push.value))


def test_updates_take_the_servers_time(make_job):
    """One at a time behind the transfers; without locks, each by itself."""
    n, update = 4, 0.25
    took = {}
    for discipline in DISCIPLINES:
        strategy = Updating(discipline=discipline, arrivals=(0.0,) * n, sizes=(S,) * n)
        fields = {"latency": "0 s", "stragglers": (), "stop": Stop(steps=1), "server_seconds": update}
        took[discipline] = run(make_job(strategy, n, S, **fields)).summary["simulated_s"]
    assert took["fcfs"] == pytest.approx(SERVICE + n * update, rel=1e-9)
    assert took["round_robin"] == pytest.approx(SERVICE + n * update, rel=1e-9)
    assert took["processor_sharing"] == pytest.approx(n * SERVICE + n * update, rel=1e-9)
    assert took["lock_free"] == pytest.approx(n * SERVICE + update, rel=1e-9)


def test_a_model_is_seen_when_its_update_is_done(make_job):
    """Worker 1 pulls while worker 0's push is being applied: it gets the model before."""

    class Peek(Updating):
        kind: str = "peek"

        def worker(self, w: Any) -> Proc[None]:
            for _ in w.steps():
                if w.rank == 0:
                    yield from w.push(Ghost(S), 0)
                for at in (0.1, 0.3) if w.rank else ():
                    yield from w.charge(at - w.line.t)
                    _, version = yield from w.pull()
                    seen.append(version)

    seen: list[int] = []
    strategy = Peek(arrivals=(), sizes=())
    job = make_job(strategy, 2, S, latency="0 s", stragglers=(), stop=Stop(steps=1), server_seconds=0.2)
    run(job)
    assert seen == [0, 1]  # applied from 0.04 s to 0.24 s


# staleness


@pytest.mark.parametrize("n", [2, 5])
def test_equal_asynchronous_workers_are_n_minus_1_versions_behind(make_job, n):
    """Between a worker's pull and its next push each other worker pushes once. In the first step fewer do:
    all start from version 0, so the k-th to push is k versions behind."""
    steps, g = 6, 10.0
    job = make_job(ParameterServer(), n, S, seconds=g, stragglers=(), stop=Stop(steps=steps))
    found = run(job)
    stale = found.steps["staleness"].reshape(n, steps)
    np.testing.assert_array_equal(stale[:, 0], np.arange(n))
    np.testing.assert_array_equal(stale[:, 1:], n - 1)
    assert found.summary["staleness_max"] == n - 1
    assert found.summary["staleness_mean"] == pytest.approx(stale.mean())


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("bound", [0, 1, 3])
def test_a_bound_bounds(make_job, bound, discipline):
    """Who begins a step has at most `bound` pushes more applied than the slowest; someone gets there."""
    n, steps = 5, 30
    slow = {"where": {"worker": 1}, "per": "run", "factor": {"kind": "constant", "value": 4.0}}
    strategy = ParameterServer(bound=bound, discipline=discipline)
    job = make_job(strategy, n, 1e6, stragglers=(LOGNORMAL, slow), stop=Stop(steps=steps))
    found = run(job)
    spans = found.spans
    pushed = (spans["name"].texts() == "push") & (spans["kind"].texts() == "communication")
    applied = np.stack([spans["end_s"][pushed & (spans["worker"] == w)] for w in range(n)])
    begun = found.steps["start_s"].reshape(n, steps)
    behind = np.stack([[(applied[w] <= t).sum() for w in range(n)] for t in begun.ravel()]).min(axis=1)
    ahead = np.tile(np.arange(steps), n) - behind
    assert ahead.max() <= bound
    if discipline != "round_robin":  # which keeps all in step by itself
        assert ahead.max() >= bound
    assert found.summary["staleness_max"] <= (0 if bound == 0 else (n - 1) * (2 * bound + 1))


def test_without_a_bound_the_fast_run_away(make_job):
    slow = {"where": {"worker": 1}, "per": "run", "factor": {"kind": "constant", "value": 8.0}}
    job = make_job(ParameterServer(), 3, 1e6, stragglers=(slow,), stop=Stop(time=3.0))
    summary = run(job).summary
    assert summary["steps_per_worker_max"] > 6 * summary["steps_per_worker_min"]
    assert summary["rounds"] is None


def test_slack_that_waits_is_waiting_and_not_communication(make_job):
    """Worker 0 is bound to worker 1, which takes 4 times as long."""
    slow = {"where": {"worker": 1}, "per": "run", "factor": {"kind": "constant", "value": 4.0}}
    job = make_job(ParameterServer(bound=0), 2, 1e3, stragglers=(slow,), stop=Stop(steps=10))
    found = run(job)
    waiting = found.workers["waiting_fraction"]
    assert waiting[0] == pytest.approx(0.75, abs=0.01)
    assert waiting[1] < 0.01


def test_several_local_steps_between_pushes(make_job):
    """With n_sync 3 the server gets every third step's change; the steps between cost no communication."""
    job = make_job(ParameterServer(n_sync=3), 2, S, stragglers=(), stop=Stop(steps=7))
    found = run(job)
    spent = found.steps["communication_s"].reshape(2, 7)
    assert (spent[:, [0, 1, 3, 4, 6]] < SERVICE + 2 * A).all()  # the first pull belongs to the first step
    assert (spent[:, [2, 5]] > 2 * SERVICE).all()
    assert np.isnan(found.steps["staleness"].reshape(2, 7)[:, [0, 1, 3, 4, 6]]).all()


def test_a_servers_maths(make_job, finished):
    """One worker's gradients at what it pulled, each applied at the learning rate of the worker's step."""
    schedule = Piecewise(at=[3], values=[0.1])
    problem = Quadratic(dimension=6)
    job = make_job(ParameterServer(), 1, problem=problem, schedule=schedule, stop=Stop(steps=5))
    engine = finished(job)
    maths = job.maths(engine.draws)
    x = maths.initial()
    for step in range(5):
        x = x - 0.1 * (1.0 if step < 2 else 0.1) * maths.gradient(x, 0, step)
    assert (engine.the_server().model.data == x.data).all()
    assert engine.the_server().version == 5
