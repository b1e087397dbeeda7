"""How far bundles are from messages: the gate for rings, limits for all others (table in ARCHITECTURE.md).

Random cases: several groups at once, cross traffic, unequal hosts, latency. A case is run twice,
message by message and as bundles; the errors are of durations, relative to the messages'. A collective's
counts from its last arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from simulator.clock import Clock
from simulator.collectives import Group
from simulator.fabric import Fabric
from simulator.network import Network
from topologies.fat_tree import FatTree
from topologies.star import Star

RATE = 1e9  # bytes/s of a host's link
HOSTS = 16
HOST_OF = {16: 4}  # members a host, for the hierarchical; else pairs
SHAPES = ([4, 4, 4], [5, 5, 5], [8, 4])  # members of the groups; or one group of 6 to 16


@dataclass(frozen=True)
class Party:
    """One group's call: nodes, bytes, arrivals."""

    nodes: np.ndarray
    nbytes: float
    arrivals: np.ndarray


@dataclass(frozen=True)
class Case:
    """What happens on one network."""

    seed: int
    fabric: Fabric
    parties: list[Party]
    cross: list[tuple[int, int, float, float]]  # src, dst, bytes, start
    op: str
    algorithm: str
    send_ends: str = "left"


def network_of(rng: np.random.Generator, star: bool, unequal: bool, latency: float) -> Fabric:
    """16 hosts on a star or a k = 4 fat tree with ECMP, every third tree oversubscribed 2:1.

    Unequal: half of the hosts have links of 1/2, 1/4 or some part of the rate. `latency`: the longest path's.
    """
    link = {"bandwidth": "8 Gbit/s", "latency": "0 s"}
    if star:
        fabric, hops = Star(hosts=HOSTS, link=link).build(), 2
    else:
        over = 2.0 if rng.random() < 0.3 else 1.0
        tree = FatTree(k=4, hosts=HOSTS, oversubscription=over, routing="ecmp", link=link)
        fabric, hops = tree.build(seed=int(rng.integers(10**6))), 6
    bandwidth = fabric.bandwidth.copy()
    for host in fabric.hosts if unequal else ():
        part = rng.choice([1.0, 1.0, 1.0, 0.5, 0.25, rng.uniform(0.3, 1.0)])
        bandwidth[(fabric.tail == host) | (fabric.head == host)] *= part
    return replace(fabric, bandwidth=bandwidth, latency=np.full(fabric.links, latency / hops))


def case(seed: int, op: str, algorithm: str, send_ends: str = "left") -> Case:
    """A case of the gate: arrivals over 0 to 3 transfer times, latency of 0 to 1 chunk's time."""
    rng = np.random.default_rng(seed)
    star = rng.random() < 0.35
    shape = int(rng.integers(len(SHAPES) + 1))
    sizes = SHAPES[shape] if shape < len(SHAPES) else [int(rng.integers(6, HOSTS + 1))]
    if op == "exchange":
        sizes = [n // 2 * 2 for n in sizes]
    most = max(sizes)
    nbytes = 2e6 * rng.uniform(0.5, 2.0)
    chunk = nbytes / most / RATE
    fabric = network_of(rng, star, rng.random() < 0.5, rng.uniform(0.0, 1.0) * chunk)
    transfer = 2 * (most - 1) * chunk
    spread = rng.uniform(0.0, 3.0) * transfer
    hosts, parties = rng.permutation(fabric.hosts), []
    for n in sizes:
        nodes, hosts = hosts[:n], hosts[n:]
        parties.append(Party(nodes, nbytes * rng.uniform(0.7, 1.4), rng.uniform(0.0, spread, n)))
    count = int(rng.choice([0, 0, 2, 6, 12, 20]))
    cross = [messages(rng, fabric, transfer * RATE, 3 * transfer) for _ in range(count)]
    return Case(seed, fabric, parties, cross, op, algorithm, send_ends)


@dataclass(frozen=True)
class Row:
    """Cases of one kind: equal hosts, no latency, groups starting within a transfer time of each other.

    `limits`: 95th percentile and worst error of the collective and of cross messages. For rings the gate, for
    all else what a first study of plain bundles (one rate, no run-ahead) found on cases of this kind.
    """

    name: str
    algorithm: str
    sizes: tuple[int, ...]
    cross: int
    cases: int
    limits: tuple[float, float, float, float]
    k: int = 4
    over: float = 1.0
    in_order: bool = False

    def case(self, seed: int) -> Case:
        """Case number `seed` of this row."""
        rng = np.random.default_rng([seed, self.k, self.cross, sum(self.sizes)])
        link = {"bandwidth": "8 Gbit/s", "latency": "0 s"}
        tree = FatTree(k=self.k, oversubscription=self.over, routing="ecmp", link=link)
        fabric = tree.build(seed=int(rng.integers(10**6)))
        hosts = fabric.hosts[: self.k**3 // 4]
        hosts = hosts if self.in_order else rng.permutation(hosts)
        nbytes, parties = 2e6, []
        transfer = 2 * nbytes / RATE
        for n in self.sizes:
            nodes, hosts = hosts[:n], hosts[n:]
            start = np.full(n, rng.uniform(0.0, transfer))
            parties.append(Party(nodes, nbytes * rng.uniform(0.7, 1.4), start))
        cross = [messages(rng, fabric, transfer * RATE, 2 * transfer) for _ in range(self.cross)]
        return Case(seed, fabric, parties, cross, "all_reduce", self.algorithm)


FOURS, SIXTEENS, THIRTY_TWOS = (4, 4, 4), (16, 16, 16), (32, 32, 32)
ROWS = (
    Row("3 rings of 4, quiet", "ring", FOURS, 0, 50, (0.10, 0.25, 0, 0)),
    Row("3 rings of 4, 6 cross", "ring", FOURS, 6, 80, (0.10, 0.25, 0.20, 0.33)),
    Row("same, 2:1 oversubscribed", "ring", FOURS, 6, 50, (0.10, 0.25, 0.19, 0.33), over=2.0),
    Row("3 rings of 4, 20 cross", "ring", FOURS, 20, 40, (0.10, 0.25, 0.18, 0.37)),
    Row("k = 8, 3 rings of 16, 12 cross", "ring", SIXTEENS, 12, 12, (0.10, 0.25, 0.24, 0.31), k=8),
    Row("k = 8, 3 rings of 32, 12 cross", "ring", THIRTY_TWOS, 12, 5, (0.10, 0.25, 0.33, 0.38), k=8),
    Row("halving-doubling of 4, 6 cross", "halving_doubling", FOURS, 6, 60, (0.13, 0.24, 0.27, 0.59)),
    Row("halving-doubling, one of 16, quiet", "halving_doubling", (16,), 0, 30, (0.15, 0.15, 0, 0)),
    Row("halving-doubling, 3 of 16, quiet", "halving_doubling", SIXTEENS, 0, 12, (0.22, 0.23, 0, 0), k=8),
    Row(
        "hierarchical 4 x 4, 12 cross", "hierarchical", (16,), 12, 12, (0.13, 0.14, 0.19, 0.36), in_order=True
    ),
    Row("same, random placement", "hierarchical", (16,), 12, 12, (0.12, 0.15, 0.17, 0.37)),
)


def messages(
    rng: np.random.Generator, fabric: Fabric, edge: float, span: float
) -> tuple[int, int, float, float]:
    """A message of the size class of what an edge of the rings carries, starting within `span` seconds."""
    src, dst = rng.choice(fabric.hosts, 2, replace=False).tolist()
    return src, dst, edge * rng.uniform(0.5, 1.5), rng.uniform(0.0, span)


def durations(case: Case, fidelity: str) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of the collectives (from their last arrivals) and of the cross messages."""
    clock = Clock()
    network = Network(clock, case.fabric, fidelity=fidelity, send_ends=case.send_ends)
    calls = []
    for party in case.parties:
        n = len(party.nodes)
        hosts = np.arange(n) // HOST_OF.get(n, 2 if n % 2 == 0 else 1)
        group = Group(network, party.nodes, hosts=hosts)
        calls.append(group.call(case.op, party.nbytes, algorithm=case.algorithm))
        calls[-1].arrive_all(party.arrivals)
    arrived = [network.message(*message).arrived for message in case.cross]
    clock.run()
    network.check_laws()
    return (
        np.array([c.left.max() - c.arrivals.max() for c in calls]),
        np.array([e.value for e in arrived]) - np.array([m[3] for m in case.cross]),
    )


@dataclass(frozen=True)
class Errors:
    """Relative errors of durations, bundles against flows."""

    collective: np.ndarray
    cross: np.ndarray


def errors(cases: list[Case]) -> Errors:
    """Run each case both ways."""
    collective, cross = [], []
    for each in cases:
        exact, other = durations(each, "flows"), durations(each, "bundles")
        collective.append(other[0] / exact[0] - 1)
        cross.append(other[1] / exact[1] - 1)
    return Errors(np.concatenate(collective), np.concatenate(cross))


def row(name: str, error: np.ndarray) -> str:
    """Mean, median of the size, 95th percentile, worst, in per cent."""
    if not len(error):
        return f"{name}: -"
    size = np.abs(error)
    parts = (error.mean(), np.median(size), np.percentile(size, 95), size.max())
    return f"{name}: {parts[0]:+.1%} / {parts[1]:.1%} / {parts[2]:.1%} / {parts[3]:.1%} ({len(error)})"


CASES = 200
CROSS = (0.15, 0.40)  # of all algorithms: 95th percentile and worst of the cross messages
GATES = [  # op, algorithm, send_ends, limits of the collective's error: 95th percentile, worst
    ("all_reduce", "ring", "left", 0.10, 0.25),
    ("all_reduce", "ring", "arrived", 0.10, 0.25),
    ("reduce_scatter", "ring", "left", 0.10, 0.25),
    ("all_gather", "ring", "left", 0.10, 0.25),
    ("all_reduce", "halving_doubling", "left", 0.10, 0.25),
    ("all_reduce", "tree", "left", 0.10, 0.25),
    ("all_reduce", "double_tree", "left", 0.10, 0.25),
    ("all_reduce", "hierarchical", "left", 0.10, 0.25),
    ("all_reduce", "direct", "left", 0.10, 0.25),
    ("all_to_all", "direct", "left", 0.10, 0.25),
    ("broadcast", "binomial", "left", 1e-9, 1e-9),
    ("reduce", "binomial", "left", 1e-9, 1e-9),
    ("exchange", "pairs", "left", 1e-9, 1e-9),
    ("all_reduce", "gloo_ring", "left", 0.10, 0.25),
    ("all_reduce", "nccl_ring", "left", 0.10, 0.25),
    ("all_reduce", "in_switch", "left", 0.10, 0.25),
    ("all_to_all", "gloo_direct", "left", 0.10, 0.25),
    ("broadcast", "gloo_broadcast", "left", 1e-9, 1e-9),
    ("exchange", "gloo_pairs", "left", 1e-9, 1e-9),
]


def within(error, p95, worst):
    size = np.abs(error)
    return not len(size) or (np.percentile(size, 95) < p95 and size.max() < worst)


@pytest.mark.parametrize(("op", "algorithm", "send_ends", "p95", "worst"), GATES)
def test_random_cases(op, algorithm, send_ends, p95, worst):
    """The gate for rings: 95th percentile under 10 %, worst under 25 %; all others keep to it too."""
    found = errors([case(seed, op, algorithm, send_ends) for seed in range(CASES)])
    text = f"\n{row(f'{op} {algorithm} {send_ends}', found.collective)} | {row('cross', found.cross)}"
    print(text)
    assert within(found.collective, p95, worst), text
    assert within(found.cross, *CROSS), text
    assert abs(found.cross.mean()) < 0.03, text


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.name)
def test_rows_of_the_first_study(kind):
    """Rings within the gate, all else no worse than the first study, in any column."""
    found = errors([kind.case(seed) for seed in range(kind.cases)])
    text = f"\n{row(kind.name, found.collective)} | {row('cross', found.cross)}"
    print(text)
    assert within(found.collective, *kind.limits[:2]), text
    assert within(found.cross, *kind.limits[2:]), text


def test_one_ring_alone_is_exact():
    """Whatever its placement, ECMP collisions included: all edges wait for the most loaded link."""
    quiet = [c for c in map(case_alone, range(120)) if c is not None]
    assert len(quiet) > 10
    for each in quiet:
        exact, bundle = durations(each, "flows"), durations(each, "bundles")
        assert bundle[0] == pytest.approx(exact[0], rel=1e-9)


def case_alone(seed):
    """The ring of a case with one group of equal hosts and no latency; None for other cases."""
    found = case(seed, "all_reduce", "ring")
    if len(found.parties) > 1 or len(set(found.fabric.bandwidth.tolist())) > 1:
        return None
    still = replace(found.fabric, latency=np.zeros(found.fabric.links))
    return replace(found, fabric=still, cross=[])
