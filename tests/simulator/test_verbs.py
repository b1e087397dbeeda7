"""Verbs: that they complain, in which order they take effect, what runs beside what, who waits for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.errors import CohortError, StuckError, VerbError
from simulator.job import Stop
from simulator.placement import Workers
from simulator.problems import Quadratic
from simulator.result import Result
from simulator.run import run
from simulator.strategies import SyncSGD
from simulator.strategies.base import Proc, Strategy
from simulator.values import Ghost
from topologies import Placement, Star
from topologies.gossip import CompleteGraph

S, B, A = 40e6, 1e9, 20e-6  # value, bytes; link, bytes/s; latency host to host, s
SENT = S / B


class Own(Strategy):
    """A method of a test: its body is called once a step."""

    kind: str = "own"
    body: Any
    after: Any = None

    def worker(self, w: Any) -> Proc[None]:
        for t in w.steps():
            yield from self.body(w, t)
        if self.after is not None:
            yield from self.after(w)


class Serving(Own):
    """With a server that publishes what is pushed."""

    has_server = True
    kind: str = "serving"
    serve: Any = None

    def server(self, s: Any) -> Proc[None]:
        s.publish(s.initial_model())
        while True:
            push = yield from (self.serve or s.__class__.next_push)(s)
            s.publish(push.value)


@pytest.fixture
def go(make_job) -> Callable[..., Result]:
    """Runs a body on equal workers for some steps."""

    def of(body: Any, n: int = 2, engine: str = "process", steps: int = 1, **fields: Any) -> Result:
        method = fields.pop("method", Own)
        extra = {key: fields.pop(key) for key in ("after", "serve") if key in fields}
        given = {"stragglers": (), "optimizer_seconds": np.zeros(n), "stop": Stop(steps=steps)}
        return run(make_job(method(body=body, **extra), n, S, **(given | fields)), engine)

    return of


def seconds(found: Result, kind: str) -> list[float]:
    """Time of a kind in each worker's only step."""
    return found.steps[f"{kind}_s"].tolist()


# dropped verbs

DROPPED = {
    "gradient": lambda w, x: w.gradient(x),
    "gradient_parts": lambda w, x: w.gradient_parts(x, 1e6),
    "charge": lambda w, x: w.charge(1.0),
    "all_mean": lambda w, x: w.all_mean(x),
    "join": lambda w, x: w.join([]),
}
LONE = {
    "broadcast": lambda w, x: w.broadcast(x),
    "reduce": lambda w, x: w.reduce(x),
    "broadcast_and_reduce": lambda w, x: w.broadcast_and_reduce(x, x),
    "barrier": lambda w, x: w.barrier(),
    "neighbour_mean": lambda w, x: w.neighbour_mean(x),
    "average_with": lambda w, x: w.average_with(0),
    "push_sum": lambda w, x: w.push_sum(x, 1.0),
    "fetch": lambda w, x: w.fetch(0),
    "collect": lambda w, x: w.collect(),
    "send": lambda w, x: w.send(0, x),
    "recv": lambda w, x: w.recv(0),
    "push": lambda w, x: w.push(x, 0),
    "pull": lambda w, x: w.pull(),
    "push_pull": lambda w, x: w.push_pull(x, 0),
}


VERBS = [(engine, name) for engine in ("process", "cohort") for name in DROPPED]


@pytest.mark.parametrize(("engine", "name"), VERBS + [("process", name) for name in LONE])
@pytest.mark.parametrize("found_by", ["the next verb", "the end of the step", "the end of the process"])
def test_a_dropped_verb_is_an_error(go, name, engine, found_by):
    verb = (DROPPED | LONE)[name]

    def body(w: Any, t: int) -> Proc[None]:
        yield from w.charge(0.1)
        if found_by != "the end of the process":
            verb(w, Ghost(S))
        if found_by == "the next verb":
            yield from w.charge(0.1)

    def after(w: Any) -> Proc[None]:
        verb(w, Ghost(S))
        yield from ()

    who = "the cohort" if engine == "cohort" else "worker 0"
    cure = rf"{who} called `w\.{name}\(\.\.\.\)` and dropped it.*`yield from w\.{name}\(\.\.\.\)`"
    with pytest.raises(VerbError, match=cure):
        go(body, engine=engine, after=after if found_by == "the end of the process" else None)


def test_a_server_complains_of_a_dropped_verb(go):
    def serve(s: Any) -> Proc[Any]:
        s.next_push()
        return (yield from s.next_push())

    with pytest.raises(VerbError, match=r"the server called `w\.next_push"):
        go(lambda w, t: w.charge(0.1), method=Serving, serve=serve)


@pytest.mark.parametrize("engine", ["process", "cohort"])
def test_a_method_that_never_steps_is_an_error(make_job, engine):
    class Idle(Strategy):
        kind: str = "idle"

        def worker(self, w: Any) -> Proc[None]:
            yield from w.charge(1.0)

    with pytest.raises(VerbError, match=r"took no step: write `for t in w\.steps\(\)`"):
        run(make_job(Idle()), engine)


@pytest.mark.parametrize("engine", ["process", "cohort"])
def test_a_method_that_never_tells_its_model_is_an_error(go, engine):
    def body(w: Any, t: int) -> Proc[None]:
        yield from w.gradient(w.initial_model())

    with pytest.raises(VerbError, match=r"write `w\.report\(x\)`"):
        go(body, engine=engine, problem=Quadratic())
    go(body, engine=engine)  # nobody looks in a timing-only run


# who waits for whom


def test_different_collectives_at_one_meeting(go):
    def body(w: Any, t: int) -> Proc[None]:
        x = Ghost(S)
        yield from w.all_mean(x) if w.rank else w.broadcast(x)

    with pytest.raises(VerbError, match=r"worker 1 asks for .*all_reduce.* others for .*broadcast"):
        go(body)


def test_unequal_sizes_at_one_meeting(go):
    with pytest.raises(VerbError, match="all members must call the same in the same order"):
        go(lambda w, t: w.all_mean(Ghost(S + w.rank)))


def test_a_stuck_run_names_who_is_missing(go):
    def body(w: Any, t: int) -> Proc[None]:
        yield from w.charge(0.1)
        if w.rank in (0, 2):
            yield from w.all_mean(Ghost(S))
        else:
            yield from w.recv(0)

    with pytest.raises(StuckError) as stuck:
        go(body, n=4, steps=3)
    text = str(stuck.value)
    assert "worker 0 (step 1): all_reduce 0 for workers 1, 3" in text
    assert "worker 1 (step 1): a message from worker 0 to worker 1" in text


def test_a_stuck_run_tells_of_a_server_and_of_neighbours(go):
    def push(w: Any, t: int) -> Proc[None]:
        if w.rank == 0:
            yield from w.push(Ghost(S), 0)
            yield from w.pull(0)
        else:
            yield from w.recv(0)

    with pytest.raises(
        StuckError, match=r"worker 0 .*to take its pull \(its slack of 0 waits for worker 1\)"
    ):
        go(push, method=Serving)

    def gossip(w: Any, t: int) -> Proc[None]:
        yield from w.neighbour_mean(Ghost(S)) if w.rank else w.recv(1)

    with pytest.raises(StuckError, match=r"worker 1 .*neighbours \[0\] in step 1"):
        go(gossip, n=3, gossip=CompleteGraph())


def test_a_stuck_run_of_many_is_told_briefly(go):
    with pytest.raises(StuckError, match=r"and 8 more$"):
        go(lambda w, t: w.recv((w.rank + 1) % w.size), n=20)


@pytest.mark.parametrize("peer", [-1, 2, 99])
def test_nobody_there(go, peer):
    with pytest.raises(VerbError, match=f"there is no worker {peer}: ranks are 0 to 1"):
        go(lambda w, t: w.send(peer, Ghost(S)))
    with pytest.raises(VerbError, match=f"there is no worker {peer}"):
        go(lambda w, t: w.recv(peer))


# messages


def test_a_message_takes_its_time(go):
    """The sender goes on when its bytes have left, the receiver when they have arrived."""

    def body(w: Any, t: int) -> Proc[None]:
        if w.rank == 0:
            yield from w.charge(0.5)
            yield from w.send(1, Ghost(S))
        else:
            value = yield from w.recv(0)
            got.append(value.nbytes)

    got: list[float] = []
    found = go(body)
    assert got == [S]
    assert seconds(found, "communication") == pytest.approx([SENT, SENT + A], rel=1e-9)
    assert seconds(found, "waiting") == pytest.approx([0.0, 0.5], abs=1e-12)
    assert found.workers["bytes_sent"].tolist() == [S, 0.0]


def test_a_message_that_waits_costs_its_receiver_nothing(go):
    def body(w: Any, t: int) -> Proc[None]:
        if w.rank == 0:
            yield from w.send(1, Ghost(S))
        else:
            yield from w.charge(1.0)
            w.apply(Ghost(S), Ghost(S), w.optimizer())  # its own time has gone beyond the clock's
            yield from w.recv(0)

    found = go(body, optimizer_seconds=np.full(2, 0.25))
    assert found.steps["end_s"].tolist() == pytest.approx([SENT, 1.25], rel=1e-9)
    for kind in ("communication", "waiting"):
        assert seconds(found, kind)[1] == 0.0
    assert seconds(found, "compute")[1] == pytest.approx(1.25)


def test_letters_come_in_the_order_sent(go):
    """Whichever is the larger, and whether sent beside or not; each direction has its own order."""

    def body(w: Any, t: int) -> Proc[None]:
        peer = 1 - w.rank
        if w.rank == 0:
            first = w.start(w.send(peer, Ghost(S)))
            yield from w.send(peer, Ghost(1.0))
            yield from w.join([first])
        else:
            yield from w.send(peer, Ghost(3.0))
            yield from w.send(peer, Ghost(2.0))
        one = yield from w.recv(peer)
        two = yield from w.recv(peer)
        got[w.rank] = [one.nbytes, two.nbytes]

    got: dict[int, list[float]] = {}
    go(body)
    assert got == {0: [3.0, 2.0], 1: [S, 1.0]}


def test_an_exchange_of_two_goes_both_ways_at_once(go):
    def body(w: Any, t: int) -> Proc[None]:
        peer = 1 - w.rank
        sent = w.start(w.send(peer, Ghost(S)))
        yield from w.recv(peer)
        yield from w.join([sent])

    assert go(body).summary["simulated_s"] == pytest.approx(A + SENT, rel=1e-9)


# values


def test_means_weigh_and_broadcasts_copy(go):
    def body(w: Any, t: int) -> Proc[None]:
        x = w.initial_model()
        mean = yield from w.all_mean(x * float(w.rank + 1), weight=float(w.rank))
        copy = yield from w.broadcast(x * float(w.rank + 1), root=2)
        w.report(mean)
        got.append((float((mean / x).data[0]), float((copy / x).data[0])))

    got: list[tuple[float, float]] = []
    go(body, n=3, problem=Quadratic())
    weighted = (1 * 0 + 2 * 1 + 3 * 2) / 3
    assert got == [(pytest.approx(weighted), pytest.approx(3.0))] * 3


def test_groups_within_and_across_hosts(go):
    """4 workers on 2 hosts of 2 devices."""
    spec = {
        "kind": "star", "hosts": 2, "link": {"bandwidth": "1 GB/s", "latency": "10 us"},
        "host": {"kind": "pcie_tree", "devices": {"count": 2, "profile": "p100_sxm2"},
                 "bus": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    }  # fmt: skip
    fabric = Star.model_validate(spec).build()
    workers = Workers.of(fabric, Placement(workers=4).place(fabric))

    def body(w: Any, t: int) -> Proc[None]:
        x = w.initial_model()
        host = yield from w.all_mean(x * float(w.rank), over="server")
        across = yield from w.all_mean(x * float(w.rank), over="across")
        w.report(x)
        got[w.rank] = [float((value / x).data[0]) for value in (host, across)]

    got: dict[int, list[float]] = {}
    found = go(body, n=4, fabric=fabric, workers=workers, problem=Quadratic())
    assert got == {rank: pytest.approx([rank // 2 * 2 + 0.5, rank % 2 + 1.0]) for rank in range(4)}
    within, between = 2 * (2e-6 + S / 2 / 10e9), 2 * (22e-6 + S / 1e9)  # both pairs share a host's one link
    assert found.summary["simulated_s"] == pytest.approx(within + between, rel=1e-3)


# what runs beside what


BESIDE = {
    "all_mean": lambda w, x: w.all_mean(x),
    "broadcast": lambda w, x: w.broadcast(x),
    "barrier": lambda w, x: w.barrier(),
    "neighbour_mean": lambda w, x: w.neighbour_mean(x),
    "average_with": lambda w, x: w.average_with(1 - w.rank),
    "send": lambda w, x: w.send(1 - w.rank, x),
    "push": lambda w, x: w.push(x, 0),
    "pull": lambda w, x: w.pull(),
    "push_pull": lambda w, x: w.push_pull(x, 0),
}


@pytest.mark.parametrize("name", BESIDE)
def test_communication_hides_behind_a_gradient(go, name):
    """Started before a gradient of 0.5 s, any of them is over at its end; alone it takes time of its own."""
    method = Serving if name in ("push", "pull", "push_pull") else Own

    def alone(w: Any, t: int) -> Proc[None]:
        yield from BESIDE[name](w, Ghost(S))

    def beside(w: Any, t: int) -> Proc[None]:
        h = w.start(BESIDE[name](w, Ghost(S)))
        yield from w.gradient(Ghost(S))
        yield from w.join([h])

    fields = {"gossip": CompleteGraph(), "method": method, "seconds": 0.5}
    takes = go(alone, **fields).summary["simulated_s"]
    assert 0 < takes < 0.5
    found = go(beside, **fields)
    assert found.summary["simulated_s"] == pytest.approx(0.5, rel=1e-12)
    assert found.summary["compute_fraction"] == pytest.approx(1.0)
    hidden = found.spans["hidden"]
    assert hidden.any()
    assert found.spans["end_s"][hidden].max() == pytest.approx(takes, rel=1e-9)
    assert found.workers["bytes_sent"].sum() == go(alone, **fields).workers["bytes_sent"].sum()


def test_what_is_longer_than_the_gradient_shows(go):
    def body(w: Any, t: int) -> Proc[None]:
        h = w.start(w.all_mean(Ghost(S)))
        yield from w.gradient(Ghost(S))
        yield from w.join([h])

    takes = 2 * (A + SENT / 2)
    for engine in ("process", "cohort"):
        found = go(body, engine=engine, seconds=0.03)
        assert seconds(found, "compute") == pytest.approx([0.03] * 2)
        assert seconds(found, "communication") == pytest.approx([takes - 0.03] * 2, rel=1e-9)


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("name", ["gradient", "gradient_parts", "charge", "join"])
def test_computing_cannot_run_beside(go, name, engine):
    def body(w: Any, t: int) -> Proc[None]:
        h = w.start(DROPPED[name](w, Ghost(S)))
        yield from w.all_mean(Ghost(S))
        yield from w.join([h])

    with pytest.raises(VerbError, match=rf"started `w\.{name}.*only communication can run"):
        go(body, engine=engine)


@pytest.mark.parametrize("engine", ["process", "cohort"])
def test_what_is_started_must_be_joined(go, engine):
    def body(w: Any, t: int) -> Proc[None]:
        w.start(w.all_mean(Ghost(S)))
        yield from w.gradient(Ghost(S))

    with pytest.raises(VerbError, match=r"started `w\.all_mean\(\.\.\.\)` and never waited .*w\.join"):
        go(body, engine=engine)


def test_values_of_started_verbs_come_in_order(go):
    def body(w: Any, t: int) -> Proc[None]:
        x = w.initial_model()
        handles = [w.start(w.all_mean(x * float(k))) for k in (1, 2, 3)]
        values = yield from w.join(handles)
        got.append([float((value / x).data[0]) for value in values])
        w.report(x)

    got: list[list[float]] = []
    for engine in ("process", "cohort"):
        go(body, engine=engine, problem=Quadratic())
    assert got == [pytest.approx([1, 2, 3])] * 3


# methods that overlap in ways of their own: both engines must agree


def overlap(w: Any, t: int) -> Proc[None]:
    h = w.start(w.all_mean(w.initial_model()))
    g = yield from w.gradient(w.initial_model())
    (m,) = yield from w.join([h])
    x, _ = w.apply(m, g, w.optimizer())
    w.report(x)


def overlap_late(w: Any, t: int) -> Proc[None]:
    x = w.initial_model()
    first = w.start(w.all_mean(x))
    g = yield from w.gradient(x)
    second = w.start(w.all_mean(g))
    yield from w.gradient(x)
    (m, g) = yield from w.join([first, second])
    x, _ = w.apply(m, g, w.optimizer())
    w.report(x)


def buckets_one_by_one(w: Any, t: int) -> Proc[None]:
    parts = yield from w.gradient_parts(w.initial_model(), 5e6)
    means = []
    for part in parts:
        mean = yield from w.all_mean(part)
        means.append(mean)
    x, _ = w.apply(w.initial_model(), w.concat(means), w.optimizer())
    w.report(x)


def buckets_after_a_pause(w: Any, t: int) -> Proc[None]:
    parts = yield from w.gradient_parts(w.initial_model(), 5e6)
    yield from w.charge(0.01)
    means = yield from w.join([w.start(w.all_mean(part)) for part in parts])
    x, _ = w.apply(w.initial_model(), w.concat(means), w.optimizer())
    w.report(x)


def beside_another(w: Any, t: int) -> Proc[None]:
    h = w.start(w.all_mean(w.initial_model()))
    x = yield from w.all_mean(w.initial_model())
    g = yield from w.gradient(x)
    yield from w.join([h])
    x, _ = w.apply(x, g, w.optimizer())
    w.report(x)


def carried_over(w: Any, t: int) -> Proc[None]:
    """What is started in one step is joined in the next."""
    pending = carried.setdefault(id(w), [])
    g = yield from w.gradient(w.initial_model())
    if pending:
        yield from w.join([pending.pop()])
    if t % 3:
        pending.append(w.start(w.all_mean(g)))
    w.report(g)


carried: dict[int, list[Any]] = {}
BODIES = [overlap, overlap_late, buckets_one_by_one, buckets_after_a_pause, beside_another, carried_over]


@pytest.mark.parametrize(
    "stop", [Stop(steps=9), Stop(time=0.77), Stop(samples=700), Stop(time=1.6)], ids=repr
)
@pytest.mark.parametrize("latency", ["10 us", "3 ms"])
@pytest.mark.parametrize("body", BODIES)
def test_both_engines_agree_on_what_runs_beside(go, body, stop, latency):
    carried.clear()
    factors = ({"per": "step", "factor": {"kind": "lognormal", "mean": 1.0, "sigma": 0.5}},)
    fields = {"n": 5, "latency": latency, "stragglers": factors, "stop": stop}
    fields |= {"optimizer_seconds": np.full(5, 0.002), "problem": Quadratic(batch=32), "evaluate_every": 0.3}
    process = go(body, **fields)
    cohort = go(body, engine="cohort", **fields)
    assert cohort.summary["digest"] == process.summary["digest"]
    for column in ("communication_s", "waiting_s", "bytes_sent", "end_s"):
        np.testing.assert_allclose(cohort.steps[column], process.steps[column], rtol=1e-9, atol=1e-12)
    assert cohort.workers["bytes_sent"].tolist() == process.workers["bytes_sent"].tolist()
    assert cohort.summary["final_loss"] == pytest.approx(process.summary["final_loss"], rel=1e-12)


def test_calls_of_a_member_do_not_overtake(go):
    """A short collective behind a long one waits for it, as on one communicator."""

    def body(w: Any, t: int) -> Proc[None]:
        handles = [w.start(w.all_mean(Ghost(size))) for size in (S, 8.0)]
        yield from w.gradient(Ghost(S))
        yield from w.join(handles)

    found = go(body, record="all", seconds=1.0)
    transfers = found.transfers
    assert len(transfers["begin_s"]) == 2
    assert transfers["begin_s"][1] >= transfers["end_s"][0]


@pytest.mark.parametrize("engine", ["process", "cohort"])
def test_a_call_waits_for_the_last_byte_of_the_one_before(go, engine):
    """Begun when the first has sent all and not yet received all: it begins when that is over."""

    def body(w: Any, t: int) -> Proc[None]:
        first = w.start(w.all_mean(Ghost(8.0), algorithm="halving_doubling"))
        yield from w.charge(0.16)
        second = w.start(w.all_mean(Ghost(8.0), algorithm="halving_doubling"))
        yield from w.join([first, second])

    a = 0.1  # two rounds of it: over at 0.2, all sent by 0.1
    assert go(body, engine=engine, latency="50 ms").summary["simulated_s"] == pytest.approx(4 * a, rel=1e-6)


# what a cohort cannot do


@pytest.mark.parametrize("name", [*LONE, "rank", "kind", "model", "draw_peer"])
def test_a_cohort_names_the_verb_and_the_cure(go, name):
    uses = LONE | {
        "rank": lambda w, x: w.rank,
        "kind": lambda w, x: w.kind,
        "model": lambda w, x: w.model,
        "draw_peer": lambda w, x: w.draw_peer(),
    }

    def body(w: Any, t: int) -> Proc[None]:
        yield from w.charge(0.1)
        uses[name](w, Ghost(S))

    with pytest.raises(CohortError, match=rf"w\.{name}: .*; run it with --engine process"):
        go(body, engine="cohort", gossip=CompleteGraph())


def test_a_cohort_has_no_groups(go):
    with pytest.raises(CohortError, match=r"all_mean: groups \(over: server\) need a cohort each"):
        go(lambda w, t: w.all_mean(Ghost(S), over="server"), engine="cohort")


def test_what_begins_at_once_is_seen_by_the_next_verb(go):
    """`apply` moves a worker's own time, so that what it sends next leaves then."""

    def body(w: Any, t: int) -> Proc[None]:
        w.apply(Ghost(S), Ghost(S), w.optimizer())
        yield from w.all_mean(Ghost(S))

    for engine in ("process", "cohort"):
        found = go(body, engine=engine, optimizer_seconds=np.array([0.1, 0.3]))
        assert seconds(found, "waiting") == pytest.approx([0.2, 0.0])
        assert found.summary["simulated_s"] == pytest.approx(0.3 + 2 * (A + SENT / 2), rel=1e-9)


def test_neighbours_begin_when_both_are_there(go):
    """Also where one has told its time ahead of the clock."""

    def body(w: Any, t: int) -> Proc[None]:
        if w.rank:
            yield from w.charge(0.2)
        w.apply(Ghost(S), Ghost(S), w.optimizer())
        yield from w.neighbour_mean(Ghost(S))

    found = go(body, gossip=CompleteGraph(), optimizer_seconds=np.array([0.5, 0.1]))
    assert seconds(found, "waiting") == pytest.approx([0.0, 0.2])
    assert found.summary["simulated_s"] == pytest.approx(0.5 + A + SENT, rel=1e-9)


def test_extra_compute_is_slowed_like_the_gradient(go):
    slow = ({"where": {"worker": 1}, "per": "run", "factor": {"kind": "constant", "value": 3.0}},)
    for engine in ("process", "cohort"):
        found = go(lambda w, t: w.charge(0.5), engine=engine, stragglers=slow)
        assert seconds(found, "compute") == pytest.approx([0.5, 1.5])


def test_one_mean_for_all_is_one_object(make_job, finished):
    """Equal models are shared, so that a thousand workers' models need the memory of one."""
    engine = finished(make_job(SyncSGD(), 4, problem=Quadratic(), stop=Stop(steps=3)))
    models = engine.models_now()
    assert all(model is models[0] for model in models)
