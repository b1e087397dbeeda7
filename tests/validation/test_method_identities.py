"""Law 4, continued: identities of local, outer, gossiping and elastic methods, in float64 (claims.csv).

8 workers, a quadratic with an optimum and curvatures for each, exact gradients, stopped far from the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from simulator.job import Job, Stop
from simulator.optimizers import Momentum, Nesterov, Sgd
from simulator.problems import Quadratic
from simulator.run import run
from simulator.strategies import (
    D2,
    DPSGD,
    EASGD,
    SGP,
    DiLoCo,
    Gossip,
    GradientTracking,
    LocalSGD,
    SlowMo,
    Strategy,
    SyncSGD,
)
from simulator.strategies.base import Proc
from simulator.streams import Draws
from topologies.gossip import (
    CompleteGraph,
    CustomGraph,
    ExponentialGraph,
    OnePeerExponential,
    RingGraph,
    StarGraph,
)

N, STEPS = 8, 48
PROBLEM, PLAIN, DRAWS = Quadratic(dimension=10), Sgd(lr=0.05), Draws(1)
ROUGH = (
    {"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.3}},
    {"where": {"worker": 2}, "per": "run", "factor": {"kind": "constant", "value": 3.0}},
)
every_engine = pytest.mark.parametrize("engine", ["process", "cohort"])


@pytest.fixture
def job(make_job) -> Callable[..., Job]:
    """A job that learns among stragglers; fields as in `make_job`."""

    def make(strategy: Strategy, n: int = N, **fields: Any) -> Job:
        given = {"problem": PROBLEM, "optimizer": PLAIN, "stop": Stop(steps=STEPS)}
        given |= {"stragglers": ROUGH, "fidelity": "closed_form"}
        return make_job(strategy, n, **(given | fields))

    return make


@pytest.fixture
def model(job, finished) -> Callable[..., torch.Tensor]:
    """What a method has learned: the final model of its run."""

    def of(strategy: Strategy, n: int = N, *, engine: str = "process", **fields: Any) -> torch.Tensor:
        return finished(job(strategy, n, **fields), engine).model_now().data

    return of


def apart(first: torch.Tensor, second: torch.Tensor) -> float:
    return float((first - second).norm() / second.norm())


def functions(n: int = N) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Curvatures and optima (n, d) of the workers' functions, and the model they start from (d,)."""
    a, c = map(torch.from_numpy, PROBLEM.functions(n))
    return a, c, torch.from_numpy(PROBLEM.initial(DRAWS))


# outer steps


@every_engine
@pytest.mark.parametrize("optimizer", [PLAIN, Momentum(lr=0.02)], ids=repr)
def test_slowmo_without_slow_momentum_is_local_sgd(model, optimizer, engine):
    """p11i."""
    local = model(LocalSGD(h=8), optimizer=optimizer)
    assert apart(model(SlowMo(h=8, beta=0), optimizer=optimizer, engine=engine), local) < 1e-12
    assert apart(model(SlowMo(h=8), optimizer=optimizer, engine=engine), local) > 1e-3


@every_engine
def test_diloco_with_outer_sgd_at_rate_1_is_local_sgd(model, engine):
    """p13j."""
    local = model(LocalSGD(h=16))
    assert apart(model(DiLoCo(h=16, outer=Sgd(lr=1)), engine=engine), local) < 1e-10
    assert apart(model(DiLoCo(h=16), engine=engine), local) > 1e-3


@every_engine
def test_slowmo_is_diloco_with_an_outer_heavy_ball(model, engine):
    """At a constant rate, u = (x_0 - mean) / lr: lr alpha u is the outer heavy ball's step at rate alpha."""
    outer = Momentum(lr=0.8, momentum=0.6)
    slow = model(SlowMo(h=4, beta=0.6, alpha=0.8), engine=engine)
    assert apart(slow, model(DiLoCo(h=4, outer=outer), engine=engine)) < 1e-12


def test_slowmo_and_diloco_as_their_papers_write_them(model):
    a, c, start = functions()
    h, beta, alpha, m, rate = 4, 0.5, 0.9, 0.8, 0.7
    slow, u, outer, v = start, 0.0, start, 0.0
    for _ in range(STEPS // h):
        mean = local_steps(slow, a, c, h).mean(0)
        u = beta * u + (slow - mean) / PLAIN.lr
        slow = slow - alpha * PLAIN.lr * u
        change = outer - local_steps(outer, a, c, h).mean(0)
        v = m * v + change
        outer = outer - rate * (change + m * v)
    assert apart(model(SlowMo(h=h, beta=beta, alpha=alpha)), slow) < 1e-12
    assert apart(model(DiLoCo(h=h, outer=Nesterov(lr=rate, momentum=m))), outer) < 1e-12


def local_steps(x: torch.Tensor, a: torch.Tensor, c: torch.Tensor, h: int) -> torch.Tensor:
    """All workers' models after h plain steps from x, (n, d)."""
    rows = x.expand_as(c)
    for _ in range(h):
        rows = rows - PLAIN.lr * a * (rows - c)
    return rows


@every_engine
@pytest.mark.parametrize("strategy", [SlowMo(h=8, beta=0), DiLoCo(h=8, outer=Sgd(lr=1))], ids=repr)
def test_between_averages_the_outer_model_is_what_was_learned(job, finished, strategy, engine):
    """Stopped within a round: the method's model is that of the last average, the workers' have gone on."""
    whole, torn = (finished(job(strategy, stop=Stop(steps=s)), engine) for s in (40, 45))
    assert (torn.model_now().data == whole.model_now().data).all()
    assert torn.maths.distance(torn.models_now()) > 0
    assert whole.maths.distance(whole.models_now()) == 0


def test_outer_steps_cost_their_passes(job):
    """Nesterov reads x, g, m and writes x, m; every fourth of 48 steps, the same for both outer methods."""
    fields = {"problem": None, "stragglers": (), "pass_seconds": np.full(N, 0.001)}
    free = run(job(LocalSGD(h=4), **fields)).summary["simulated_s"]
    for strategy in (SlowMo(h=4), DiLoCo(h=4)):
        taken = run(job(strategy, **fields)).summary["simulated_s"]
        assert taken - free == pytest.approx(12 * 5 * 0.001, rel=1e-9)


# corrections for data that are unlike


GRAPHS = [
    RingGraph(lazy=0.2),
    ExponentialGraph(),
    CustomGraph(edges=((0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 6), (6, 7)), lazy=0.3),
]
every_graph = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.graph)


def models(engine: Any) -> torch.Tensor:
    """The workers' own models, (n, d)."""
    return torch.stack([x.data for x in engine.models_now()])


@every_graph
def test_d2_and_gradient_tracking_as_their_papers_write_them(job, finished, graph):
    a, c, start = functions()
    w = torch.from_numpy(graph.mixing(1, N, DRAWS).matrix())
    lr = PLAIN.lr

    def slope(x: torch.Tensor) -> torch.Tensor:
        return a * (x - c)

    x_before = x = start.expand_as(c)
    x = w @ (x - lr * slope(x))
    for _ in range(STEPS - 1):
        x, x_before = w @ (2 * x - x_before - lr * (slope(x) - slope(x_before))), x
    assert apart(models(finished(job(D2(), gossip=graph))), x) < 1e-10
    x = start.expand_as(c)
    y = g = slope(x)
    for _ in range(STEPS):
        x = w @ (x - lr * y)
        g, g_before = slope(x), g
        y = w @ y + g - g_before
    assert apart(models(finished(job(GradientTracking(), gossip=graph))), x) < 1e-10


def test_d2_on_a_complete_graph_is_all_reduce(model):
    assert apart(model(D2(), gossip=CompleteGraph()), model(SyncSGD())) < 1e-10


@pytest.mark.parametrize(
    ("strategy", "graph"), [(D2(), RingGraph(lazy=0.2)), (GradientTracking(), ExponentialGraph())], ids=repr
)
def test_corrected_methods_find_the_common_optimum(job, finished, strategy, graph):
    """At a constant rate, functions being unlike, where D-PSGD stays off it; worker by worker."""
    problem = Quadratic(dimension=10, condition=2)
    fields = {"problem": problem, "gossip": graph, "optimizer": Sgd(lr=0.3)}
    fields |= {"stop": Stop(steps=250)}
    best = torch.from_numpy(problem.optimum(N)[0]).expand(N, -1)
    assert apart(models(finished(job(strategy, **fields))), best) < 1e-10
    assert apart(models(finished(job(DPSGD(), **fields))), best) > 1e-2


def test_tracking_costs_twice_the_bytes_and_not_a_message_more(job):
    fields = {"problem": None, "stragglers": (), "gossip": RingGraph(), "fidelity": "bundles"}
    plain, tracking = (run(job(s, **fields)).summary for s in (DPSGD(), GradientTracking()))
    assert tracking["bytes_sent"] == 2 * plain["bytes_sent"]
    one_way = 20e-6  # of a message: what both pay once a step
    taken = [found["simulated_s"] / STEPS - 0.102 - one_way for found in (plain, tracking)]
    assert taken[1] == pytest.approx(2 * taken[0], rel=1e-6)


# gossip that nobody waits for, and push-sum


FREE = {"bandwidth": "1000000 Gbit/s", "latency": "0 s"}


@pytest.mark.parametrize("strategy", [Gossip(), Gossip(every=3), Gossip(direction="push")], ids=repr)
def test_gossip_from_one_start_and_with_equal_data_is_plain_sgd(job, finished, model, strategy):
    """p07i: in step with each other, that is without sharing of links, and, for push, without latency."""
    problem = Quadratic(dimension=10, spread=0)
    fields = {"problem": problem, "stragglers": (), "gossip": CompleteGraph(), **FREE}
    single = model(SyncSGD(), 1, problem=problem, stragglers=())
    learned = models(finished(job(strategy, **fields)))
    assert apart(learned, single.expand(N, -1)) < 1e-12


def test_a_pull_takes_half_of_the_peer_and_leaves_it_alone(job, finished):
    """Two workers with other step times, events written out; worker 0 pulls in the middle of 1's gradient."""
    slow = {"where": {"worker": 1}, "per": "run", "factor": {"kind": "constant", "value": 2.5}}
    a, c, start = functions(2)
    fields = {"gossip": CompleteGraph(), "stragglers": (slow,), "optimizer_seconds": np.zeros(2), **FREE}
    got = models(finished(job(Gossip(every=2), 2, **fields, stop=Stop(steps=4))))
    x = [start, start]
    begun = [start, start]  # models of the gradients under way
    events = [
        (0.10, 0), (0.20, 0), (0.20, "0 pulls"), (0.25, 1), (0.30, 0), (0.40, 0), (0.40, "0 pulls"),
        (0.50, 1), (0.50, "1 pulls"), (0.75, 1), (1.00, 1), (1.00, "1 pulls"),
    ]  # fmt: skip
    for _, who in events:
        if isinstance(who, int):
            x[who] = x[who] - PLAIN.lr * a[who] * (begun[who] - c[who])
        else:
            puller = int(who[0])
            x[puller] = (x[puller] + x[1 - puller]) / 2
        begun = [x[i] if who == i or who == f"{i} pulls" else begun[i] for i in range(2)]
    assert apart(got, torch.stack(x)) < 1e-12


def test_a_fetched_model_has_no_step_that_is_still_under_way(job, finished):
    """Worker 0 asks while 1 spends half a second on its first update: it gets what 1 began with."""
    fields = {"gossip": CompleteGraph(), "stragglers": (), "stop": Stop(steps=1), **FREE}
    engine = finished(job(Gossip(), 2, optimizer_seconds=np.array([0.0, 0.5]), **fields))
    a, c, start = functions(2)
    own = start - PLAIN.lr * a[0] * (start - c[0])
    assert apart(models(engine)[0], (own + start) / 2) < 1e-12


def test_all_that_was_pushed_counts_once(job, finished):
    """Three workers push to the fourth in its first step; at the end of it the mean is of four."""
    slow = {"where": {"worker": 0}, "per": "run", "factor": {"kind": "constant", "value": 3.0}}
    fields = {"gossip": StarGraph(), "stragglers": (slow,), "stop": Stop(steps=1), "bandwidth": "100 GB/s"}
    engine = finished(job(Gossip(direction="push"), 4, optimizer_seconds=np.zeros(4), **fields))
    a, c, start = functions(4)
    stepped = start - PLAIN.lr * a * (start - c)
    assert apart(models(engine)[0], stepped.mean(0)) < 1e-12
    assert apart(models(engine)[1:], stepped[1:]) < 1e-12


@pytest.mark.parametrize(
    "graph", [ExponentialGraph(), OnePeerExponential(), RingGraph()], ids=lambda g: g.graph
)
def test_push_sum_on_a_regular_graph_is_gossip(job, finished, graph):
    """All masses stay 1: stochastic gradient push is D-PSGD, step then mix."""
    pushed, mixed = (models(finished(job(s, gossip=graph))) for s in (SGP(), DPSGD()))
    assert apart(pushed, mixed) < 1e-12


@pytest.mark.parametrize(
    "graph",
    [StarGraph(), CustomGraph(edges=((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)))],
    ids=lambda g: g.graph,
)
def test_push_sum_as_the_paper_writes_it(job, finished, graph):
    """On graphs whose workers send to unequally many: shares by columns, and masses that differ."""
    a, c, start = functions()
    joined = graph.mixing(1, N, DRAWS).matrix() > 0
    joined |= np.eye(N, dtype=bool)
    p = torch.from_numpy(joined / joined.sum(0))
    x, mass = start.expand_as(c), torch.ones(N, 1, dtype=torch.float64)
    for _ in range(STEPS):
        x = p @ (x - PLAIN.lr * a * (x / mass - c))
        mass = p @ mass
    assert float(mass.max() - mass.min()) > 0.5
    assert apart(models(finished(job(SGP(), gossip=graph))), x / mass) < 1e-12


class OnlyPushing(Strategy):
    """Unlike models, pushed and never trained."""

    needs_gossip = True
    kind: str = "only_pushing"

    def worker(self, w: Any) -> Proc[None]:
        x, mass = w.initial_model() * float(w.rank), 1.0
        for _ in w.steps():
            x, mass = yield from w.push_sum(x, mass)
            w.report(x / mass)


def test_push_sum_finds_the_mean_whatever_the_graph(job, finished):
    engine = finished(job(OnlyPushing(), gossip=StarGraph(), stop=Stop(steps=300)))
    mean = engine.maths.initial().data * (N - 1) / 2
    assert apart(models(engine), mean.expand(N, -1)) < 1e-12


# elastic averaging


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_sync_easgd_does_not_depend_on_who_is_late(job, finished, stage):
    """p12i: the order of arrival does not enter; in a queue it does."""
    late = ({"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.5}},)
    for strategy, depends in ((EASGD(sync_stage=stage), False), (EASGD(), True)):
        even = finished(job(strategy, stragglers=(), bandwidth="20 GB/s"))  # a full queue keeps its order
        unlike = finished(job(strategy, stragglers=late, bandwidth="20 GB/s"))
        assert (apart(models(unlike), models(even)) > 1e-12) == depends
        assert (apart(unlike.model_now().data, even.model_now().data) > 1e-12) == depends


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("every", [1, 4])
def test_sync_easgd_as_the_paper_writes_it(job, finished, stage, every):
    """Rules (1) to (6) with alpha = beta / workers, both sides with what was before."""
    a, c, start = functions()
    beta, mu = 0.6, 0.5
    x, v, centre = start.expand_as(c), 0.0, start
    for t in range(1, STEPS + 1):
        pull = (x - centre) * (t % every == 0)
        v = a * (x - c) + mu * v
        x = x - PLAIN.lr * v - beta / N * pull
        centre = centre + beta / N * pull.sum(0)
    engine = finished(job(EASGD(sync_stage=stage, beta=beta, momentum=mu, every=every)))
    assert apart(models(engine), x) < 1e-12
    assert apart(engine.model_now().data, centre) < 1e-12


def test_round_robin_easgd_in_turn(job, finished):
    """Slow links: the turn decides, 0 to 7, each with the centre that the one before has left."""
    a, c, start = functions()
    alpha = 0.9 / N
    x, centre = list(start.expand_as(c)), start
    for _ in range(STEPS):
        for i in range(N):
            before, told = x[i], centre
            x[i] = before - PLAIN.lr * a[i] * (before - c[i]) - alpha * (before - told)
            centre = told + alpha * (before - told)
    engine = finished(job(EASGD(discipline="round_robin"), bandwidth="100 MB/s"))
    assert apart(models(engine), torch.stack(x)) < 1e-12
    assert apart(engine.model_now().data, centre) < 1e-12


@pytest.mark.parametrize("discipline", ["round_robin", "fcfs", "lock_free"])
def test_packing_changes_no_model_in_lock_step_or_turn(job, finished, discipline):
    for strategy in (EASGD(sync_stage=1), EASGD(discipline=discipline)):
        packed, apart_ = (
            finished(job(strategy.model_copy(update={"packed": p}), 2, stragglers=())) for p in (True, False)
        )
        assert (models(packed) == models(apart_)).all()
