"""What goes on around a run: links that change, background traffic, other jobs; against closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from simulator.background import MOST_UNDER_WAY, BackgroundFlows, Traffic
from simulator.clock import Clock
from simulator.errors import InputError, StuckError
from simulator.job import Stop
from simulator.link_schedule import LinkChange, LinkSchedule
from simulator.network import Network
from simulator.placement import Workers
from simulator.run import run
from simulator.some_links import Links, hosts_named
from simulator.strategies import ADPSGD, LocalSGD, ParameterServer, SyncSGD
from simulator.strategies.base import Strategy
from simulator.streams import Draws
from simulator.surroundings import OtherJob
from topologies import LeafSpine, Star
from topologies.gossip import RandomMatching

B = 1e9
LINK = {"bandwidth": "1 GB/s", "latency": "0 s"}
TWO = {"kind": "pcie_tree", "devices": {"count": 2}, "bus": {"bandwidth": "100 GB/s", "latency": "0 s"}}
FLOWS: TypeAdapter[Any] = TypeAdapter(BackgroundFlows)
HALVES = {"where": {"link": "h1->s0"}, "at": ["100 ms", "300 ms"], "bandwidth": [0.5, 1.0]}
SLOW_TIMES = {
    "where": {"link": "h*<->s0"},
    "every": "400 ms",
    "duration": "100 ms",
    "factor": {"kind": "two_point", "p": 0.5, "low": 2, "high": 5},
}
RANDOM = {"kind": "poisson", "load": 0.3, "size": "2 MB", "spread": {"kind": "pareto", "alpha": 2.2}}
RING = SyncSGD(bucket_bytes="1 TB")


def flows(**keys: Any) -> Any:
    return FLOWS.validate_python({"kind": "endless", **keys})


def changes(*entries: dict[str, Any]) -> tuple[LinkChange, ...]:
    return tuple(LinkChange.model_validate(entry) for entry in entries)


def mean_step(job: Any, engine: str = "process") -> float:
    return float(run(job, engine).summary["step_time_s"]["mean"])


def alone(network: Network, *schedule: dict[str, Any], seed: int = 1) -> None:
    """The schedule on a network that no run uses."""
    LinkSchedule(changes(*schedule), network, Draws(seed)).begin()


# patterns


def test_patterns_of_links():
    fabric = LeafSpine(hosts=4, hosts_per_leaf=2, spines=2, link=LINK).build()

    def named(*patterns: str) -> set[str]:
        chosen = Links(link=patterns if len(patterns) > 1 else patterns[0]).select(fabric)
        return {fabric.link_names[link] for link in chosen}

    assert named("h0->leaf0") == {"h0->leaf0"}
    assert named("leaf0<->h0") == {"h0->leaf0", "leaf0->h0"}
    assert named("leaf*->spine1") == {"leaf0->spine1", "leaf1->spine1"}
    assert named("h?->*") == {f"h{i}->leaf{i // 2}" for i in range(4)}
    assert named("h3") == {"h3->leaf1", "leaf1->h3"}
    assert named("h0->leaf0", "h1->leaf0") == {"h0->leaf0", "h1->leaf0"}
    assert len(named("*")) == fabric.links
    assert hosts_named(fabric, "h*").tolist() == [0, 1, 2, 3]
    assert hosts_named(fabric, ("h3", "h1")).tolist() == [1, 3]
    with pytest.raises(InputError, match=r"found 'h9->leaf0'; expected .*links here: h0->leaf0"):
        named("h0->leaf0", "h9->leaf0")
    with pytest.raises(InputError, match="hosts here: h0, h1"):
        hosts_named(fabric, "spine0")


def test_parallel_links_have_numbers():
    host = {"kind": "pcie_tree", "devices": {"count": 2}, "nics": 2}
    fabric = Star(hosts=2, link=LINK, host=host).build()
    picked = [
        [fabric.link_names[link] for link in Links(link=pattern).select(fabric)]
        for pattern in ("h0->s0", "h0->s0#0", "h0->s0#1")
    ]
    assert picked == [["h0->s0", "h0->s0#1"], ["h0->s0"], ["h0->s0#1"]]


# link schedules


def test_a_message_through_changes_takes_the_sum_of_its_parts():
    clock = Clock()
    network = Network(clock, Star(hosts=2, link=LINK).build())
    alone(network, HALVES, {"where": {"link": "h1->*"}, "at": ["200 ms"], "bandwidth": [0.5]})
    message = network.message(1, 0, 0.3 * B)
    clock.run(until=message.arrived)
    # 100 ms at 1, 100 ms at 0.5, 100 ms at 0.25, the rest at 0.5
    assert clock.now == pytest.approx(0.3 + (0.3 - 0.175) / 0.5, rel=1e-12)
    link = network.fabric.link_names.index("h1->s0")
    assert network.supplied(clock.now)[link] == pytest.approx(0.3 * B, rel=1e-12)
    network.check_laws()


@pytest.mark.parametrize("fidelity", ["flows", "bundles", "closed_form"])
def test_a_schedule_that_repeats(fidelity):
    clock = Clock()
    network = Network(clock, Star(hosts=2, link=LINK).build(), fidelity=fidelity)
    entry = {"where": {"link": "h0"}, "at": ["1 s", "2 s"], "bandwidth": [0.25, 1.0], "repeat": "5 s"}
    alone(network, entry)
    message = network.message(0, 1, 17.0 * B)
    clock.run(until=message.left)
    assert clock.now == pytest.approx(5 * 4 + (17 - 4 * 4.25), rel=1e-12)


def test_random_slow_times_have_their_share_of_time_and_both_ways_of_a_cable():
    clock = Clock()
    fabric = Star(hosts=3, link=LINK).build()
    network = Network(clock, fabric)
    alone(network, SLOW_TIMES)
    seen = []
    for time in np.arange(0.005, 400, 0.05):
        clock.at(time)
        clock.run(until=time + 1e-3)
        seen.append(network.bandwidth / B)
    shares = np.array(seen)
    assert set(np.unique(shares)) == {1 / 5, 1 / 2, 1.0}
    assert (shares[:, ::2] == shares[:, 1::2]).all()
    assert (shares < 1).mean() == pytest.approx(0.25, abs=0.02)
    assert (shares[:, 0] != shares[:, 2]).any()


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "tree"])
@pytest.mark.parametrize("fidelity", ["flows", "bundles", "closed_form"])
def test_a_change_at_the_start_is_another_network(make_job, fidelity, algorithm, engine):
    """Half the bandwidth from time 0 on: as on links of half the bandwidth."""
    given = {"fidelity": fidelity, "algorithms": {"all_reduce": algorithm}}
    half = changes({"where": {"link": "h1"}, "at": ["0 s"], "bandwidth": [0.5]})
    fabric = make_job(RING).fabric
    slow = fabric.bandwidth.copy()
    slow[2:4] /= 2
    other = replace(fabric, bandwidth=slow)
    scheduled = run(make_job(RING, fabric=fabric, link_schedule=half, **given), engine)
    built = run(make_job(RING, fabric=other, **given), engine)
    assert scheduled.summary == built.summary
    np.testing.assert_array_equal(scheduled.links["utilisation"], built.links["utilisation"])


def test_utilisation_is_of_what_a_link_could_carry(make_job):
    half = changes({"where": {"link": "*"}, "at": ["150 ms"], "bandwidth": [0.5]})
    found = run(make_job(RING, seconds=0.0, stragglers=(), latency="0 s", link_schedule=half,
                         optimizer_seconds=np.zeros(4)))  # fmt: skip
    assert found.links["utilisation"] == pytest.approx(np.ones(8), rel=1e-12)
    assert found.links["bandwidth_bytes_per_s"] == pytest.approx(np.full(8, B))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"at": ["1 s"]}, "found at, expected"),
        ({"at": ["2 s", "1 s"], "bandwidth": [0.5, 1.0]}, "out of order"),
        ({"at": ["2 s", "3 s"], "bandwidth": [0.5]}, "found 2 times and 1 bandwidths"),
        ({"at": ["2 s", "3 s"], "bandwidth": [0.5, 1.0], "repeat": "1 s"}, "a longer one"),
        ({"at": ["2 s"], "bandwidth": [1.5]}, "less than or equal to 1"),
        ({"at": ["2 s"], "bandwidth": [0]}, "greater than or equal to 0.000001"),
        ({"every": "1 s", "duration": "2 s", "factor": {"kind": "constant", "value": 2}}, "not below"),
    ],
)
def test_schedules_that_cannot_be(entry, said):
    with pytest.raises(ValidationError, match=said):
        LinkChange.model_validate({"where": {"link": "*"}, **entry})


# background traffic


@pytest.mark.parametrize("engine", ["process", "cohort"])
@pytest.mark.parametrize("fidelity", ["flows", "bundles"])
def test_a_ring_beside_a_permanent_flow_has_half_the_rate(make_job, fidelity, engine):
    beside = flows(src="h0", dst="h1", size="70 MB")
    given = {"seconds": 0.0, "stragglers": (), "latency": "0 s", "optimizer_seconds": np.zeros(4)}
    quiet = make_job(RING, fidelity=fidelity, **given)
    assert mean_step(quiet, engine) == pytest.approx(2 * 3 / 4 * 40e6 / B, rel=1e-9)
    busy = replace(quiet, background=(beside,))
    if fidelity == "bundles":
        assert mean_step(busy, engine) == pytest.approx(2 * 2 * 3 / 4 * 40e6 / B, rel=1e-9)
    else:  # message by message the slow edge is never idle, and the others wait for it
        assert mean_step(busy, engine) == pytest.approx(2 * 2 * 3 / 4 * 40e6 / B, rel=0.02)


def test_a_capped_flow_leaves_the_rest(make_job):
    given = {"seconds": 0.0, "stragglers": (), "latency": "0 s", "optimizer_seconds": np.zeros(4)}
    capped = flows(src="h0", dst="h1", cap="200 MB/s", size="1 GB")
    assert mean_step(make_job(RING, background=(capped,), **given)) == pytest.approx(0.06 / 0.8, rel=1e-9)


def sojourns(spread: dict[str, Any], load: float, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, bytes, and times, seconds, of random flows that have one link to themselves."""
    clock = Clock()
    network = Network(clock, Star(hosts=2, link=LINK).build(), log=True)
    spec = FLOWS.validate_python(
        {"kind": "poisson", "src": "h0", "dst": "h1", "load": load, "size": "1 MB", "spread": spread}
    )
    Traffic(spec, 0, network, Draws(5)).begin()
    clock.at(until)
    clock.run(until=until)
    assert network.log is not None
    network.check_laws()
    return (
        np.array([record.total_bytes for record in network.log]),
        np.array([record.end - record.begin for record in network.log]),
    )


@pytest.mark.parametrize("load", [0.3, 0.6])
@pytest.mark.parametrize(
    "spread",
    [
        {"kind": "constant", "value": 1},
        {"kind": "exponential"},
        {"kind": "lognormal", "sigma": 1.0},
        {"kind": "two_point", "p": 0.1, "low": 0.5, "high": 5.5},
    ],
    ids=lambda spread: spread["kind"],
)
def test_flows_on_one_link_are_a_queue_with_processor_sharing(spread, load):
    """M/G/1-PS: the mean time is E[S] / (1 - load), whatever the distribution of sizes.

    Reference: L. Kleinrock, Queueing Systems, volume 2, 1976, section 4.4. A flow of given size x takes x /
    (B (1 - load)) in the mean.
    """
    sizes, times = sojourns(spread, load, until=30.0)
    assert len(sizes) > 7000
    assert sizes.sum() / 30.0 / B == pytest.approx(load, rel=0.05)
    offered = sizes.sum() / 30.0 / B
    assert times.sum() / sizes.sum() * B == pytest.approx(1 / (1 - offered), rel=0.07)
    large = sizes > np.median(sizes)
    if large.any():
        assert times[large].sum() / sizes[large].sum() * B == pytest.approx(1 / (1 - offered), rel=0.09)


def test_arrivals_of_a_host_are_its_own():
    """Another host more, and another load elsewhere, move no flow of h0."""

    def begins(hosts: int) -> list[float]:
        clock = Clock()
        network = Network(clock, Star(hosts=hosts, link=LINK).build(), log=True)
        spec = FLOWS.validate_python({"kind": "poisson", "load": 0.2, "size": "5 MB", "dst": ["h1", "h2"]})
        Traffic(spec, 0, network, Draws(5)).begin()
        clock.at(3.0)
        clock.run(until=3.0)
        first = network.fabric.link_names.index("h0->s0")
        assert network.log is not None
        return sorted(record.begin for record in network.log if first in record.activity.links)

    few, many = begins(3), begins(8)
    assert len(few) > 50
    assert len(set(few) ^ set(many)) <= 8  # all but some still under way at the end


def test_flows_begin_and_end_as_told(make_job):
    keys = {"begin": "200 ms", "end": "400 ms", "size": "1 MB"}
    entries = (flows(src="h0", dst="h1", **keys), FLOWS.validate_python({"kind": "poisson", **keys}))
    found = run(make_job(RING, background=entries, record="all"))
    names = found.transfers["name"].texts()
    begins = found.transfers["begin_s"][names == "background"]
    assert 0.2 == begins.min() < begins.max() <= 0.4


def test_more_than_the_network_carries_is_told(monkeypatch, make_job):
    monkeypatch.setattr("simulator.background.MOST_UNDER_WAY", 50)
    assert MOST_UNDER_WAY > 50
    all_to_one = FLOWS.validate_python({"kind": "poisson", "load": 0.9, "dst": "h0", "size": "1 MB"})
    job = make_job(RING, n=6, background=(all_to_one,))
    with pytest.raises(InputError, match=r"network\.background\.0: found 51 flows under way at"):
        run(job)


def test_flows_to_oneself_cannot_be(make_job):
    with pytest.raises(InputError, match="dst: found 'h2'; expected a host other"):
        run(make_job(RING, background=(flows(src="h2", dst="h2"),)))
    with pytest.raises(InputError, match="src: found 'x'"):
        run(make_job(RING, background=(flows(src="x"),)))


class Lonely(Strategy):
    """Waits for what nobody sends."""

    kind: str = "lonely"

    def worker(self, w: Any) -> Any:
        for _ in w.steps():
            x = yield from w.recv((w.rank + 1) % w.size)
            w.report(x)


@pytest.mark.parametrize("fields", [{}, {"background": (flows(src="h0", dst="h1", size="1 MB"),)}], ids=str)
def test_a_stuck_run_is_told_whatever_goes_on_around_it(make_job, fields):
    with pytest.raises(StuckError, match="worker 0"):
        run(make_job(Lonely(), **fields), "process")


# other jobs

AROUND = {
    "link_schedule": changes(HALVES, SLOW_TIMES),
    "background": (FLOWS.validate_python(RANDOM), flows(src="h2", dst="h3", cap="100 MB/s", size="3 MB")),
}


@pytest.fixture
def make_pair(make_job):
    """A run on the first devices of four hosts, and a job on the second ones; fields of both."""

    def make(strategy: Strategy, other: Strategy, begin: float = 0.0, **fields: Any) -> Any:
        fabric = Star(hosts=4, link=LINK, host=TWO).build(extra_hosts=2)
        mine, its = (Workers.of(fabric, np.arange(first, 8, 2)) for first in (0, 1))
        servers = fabric.hosts[-2:].tolist()
        common = {"fabric": fabric, "gossip": RandomMatching()} | fields
        kept = {key: value for key, value in common.items() if key not in ("stop", *AROUND)}
        beside = make_job(other, workers=its, seed=77, stop=Stop(), **kept)
        beside = replace(beside, server_node=servers[1] if other.has_server else None)
        job = make_job(strategy, workers=mine, others=(OtherJob("other", beside, begin),), **common)
        return replace(job, server_node=servers[0] if strategy.has_server else None)

    return make


@pytest.mark.parametrize("engine", ["process", "cohort"])
def test_two_rings_share_their_links_evenly(make_pair, engine):
    still = {"seconds": 0.0, "stragglers": (), "optimizer_seconds": np.zeros(4)}
    found = run(make_pair(RING, RING, **still), engine)
    assert found.summary["step_time_s"]["mean"] == pytest.approx(0.12, rel=1e-9)
    (other,) = found.summary["others"]
    assert other["step_time_s"]["mean"] == pytest.approx(0.12, rel=1e-9)
    assert other["steps"] == found.summary["steps"]


def test_a_job_that_begins_later_is_met_later(make_pair):
    still = {"seconds": 0.0, "stragglers": (), "optimizer_seconds": np.zeros(4)}
    found = run(make_pair(RING, RING, begin=0.6, **still))
    lengths = found.steps["end_s"] - found.steps["start_s"]
    assert lengths[found.steps["end_s"] < 0.59] == pytest.approx(0.06, rel=1e-9)
    assert lengths[found.steps["start_s"] > 0.61] == pytest.approx(0.12, rel=1e-9)
    late = run(make_pair(RING, RING, begin=1e6, **still))
    assert late.summary["others"][0]["steps"] == 0
    assert late.summary["step_time_s"]["mean"] == pytest.approx(0.06, rel=1e-9)


@pytest.mark.parametrize("other", [LocalSGD(h=2), ParameterServer(), ADPSGD()], ids=repr)
@pytest.mark.parametrize("strategy", [SyncSGD(), ParameterServer(bound=1)], ids=repr)
def test_bytes_of_two_jobs_are_counted_apart(make_pair, strategy, other):
    found = run(make_pair(strategy, other, stop=Stop(steps=10)))
    links, summary = found.links, found.summary
    own = links["bytes"] - links["others_bytes"]
    alone = run(replace(make_pair(strategy, other, stop=Stop(steps=10)), others=()))
    assert own == pytest.approx(alone.links["bytes"], rel=1e-9)
    assert summary["bytes_sent"] == pytest.approx(alone.summary["bytes_sent"], rel=1e-9)
    assert summary["bytes_received"] == pytest.approx(summary["bytes_sent"], rel=1e-9)
    assert summary["others"][0]["bytes_sent"] > 0
    assert links["others_bytes"].sum() > 0
    assert summary["simulated_s"] > alone.summary["simulated_s"]


# all of it together

STOPS = [Stop(steps=12), Stop(time=1.2345), Stop(samples=20 * 32 + 1)]


@pytest.mark.parametrize("stop", STOPS, ids=repr)
@pytest.mark.parametrize("fidelity", ["flows", "bundles"])
@pytest.mark.parametrize(
    "strategy", [RING, SyncSGD(bucket_bytes="10 MB", backup=1, late="finish"), LocalSGD(h=3)], ids=repr
)
def test_both_engines_give_one_digest(make_pair, strategy, fidelity, stop):
    job = make_pair(strategy, ParameterServer(), fidelity=fidelity, stop=stop, **AROUND)
    process, cohort = run(job, "process"), run(job, "cohort")
    assert process.summary["digest"] == cohort.summary["digest"]
    assert process.summary["others"] == cohort.summary["others"]
    for column in ("bytes", "background_bytes", "others_bytes", "utilisation", "busy_s"):
        np.testing.assert_array_equal(process.links[column], cohort.links[column], err_msg=column)
    quiet = run(replace(job, background=(), link_schedule=(), others=()), "cohort")
    assert quiet.summary["digest"] != cohort.summary["digest"]


@pytest.mark.parametrize("strategy", [RING, ParameterServer(), ADPSGD()], ids=repr)
def test_the_order_of_ties_decides_nothing(make_pair, shuffled_ties, strategy):
    around = {"link_schedule": changes(HALVES), "background": (flows(src="h2", dst="h3", size="10 MB"),)}
    job = make_pair(strategy, RING, stragglers=(), stop=Stop(steps=6), **around)
    plain = run(job, "process").summary
    for seed in range(3):
        assert run(job, "process", clock=shuffled_ties(seed)).summary == plain


def test_bytes_are_conserved_and_links_carry_what_they_can(make_pair):
    """`check_laws` is part of every run; here the sums, from the table."""
    found = run(make_pair(RING, ADPSGD(), stop=Stop(time=2.0), **AROUND))
    links, summary = found.links, found.summary
    assert (links["bytes"] >= links["background_bytes"] + links["others_bytes"]).all()
    assert (links["utilisation"] <= 1 + 1e-9).all()
    assert links["utilisation_peak"].max() <= 1 + 1e-9
    after = summary["bytes_received"] + summary["bytes_dropped"] + summary["bytes_in_flight"]
    assert summary["bytes_sent"] == pytest.approx(after, rel=1e-9)
