"""Collectives as gloo does them, the library behind torch.distributed on CPUs.

Every receive is a rendezvous: the receiver tells the sender that it is ready, then the bytes come. Both ways
take the one-way latency a, so a message alone takes 2 a + S/B.

*Ring.* Each of the n chunks goes in two segments. A member posts segment k when it has received and sent
segment k - 2; its port sends one segment after the other. With t = S / (2 n B) the k-th segment of a half
turn starts at

    x(k) = max(x(k-1) + t, x(k-2) + t + 2 a),    x(0) = a,    k < 2 (n-1)

so the latency is hidden when t > 2 a, and the half, which ends when its last segment has come, takes

    H = (n-1) max(t + 2 a, 2 t) + min(t, 2 a)

All-gather H; all-reduce 2 H, since its halves do not overlap; reduce-scatter is an all-reduce whose result is
thrown away but for a chunk; reduce is a half, then all chunks at once to the root: H + 2 a + (n-1)/n S/B.
If a send ends when its bytes have arrived, a segment follows the one before by t + a: H = a + 2 (n-1)(t + a).
gloo cuts chunks above 2 MiB in more than two segments of at most 1 MiB, which is the same wherever a MiB
takes longer than 2 a; here there are two.

*Broadcast.* A binomial tree, the buffer in one piece. All post their receives at once; a member sends to all
its children at the same time. With L = log2 n: (L+1) a + L (L+1)/2 S/B; the root's L sends share its port.

*The rest.* All-to-all posts everything at once, 2 a + (n-1)/n S/B; a pair exchange takes 2 a + S/B, and a
barrier L rounds of two latencies.

Sources: gloo/allreduce.cc, allgather.cc, reduce.cc, broadcast.cc, alltoall.cc, barrier.cc of
github.com/facebookincubator/gloo; that reduce-scatter is an all-reduce: ProcessGroupGloo of torch.

Arrival rule: broadcast and exchange subtree by subtree, a receiver's notice goes when it has come; all others
start when the last member has come, and all leave together.

In bundles a segment is one activity of all members, with a barrier between notices and segments; message by
message each member waits for its neighbours only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.collectives import binomial
from simulator.collectives.direct import everybody
from simulator.collectives.plan import Part, Plan, Step, in_phases, part
from simulator.fabric import IntArray

SEGMENTS = 2  # of a chunk

Wave = list[int]
"""The step that carries each member's send of one segment, shape (n,)."""


@dataclass(slots=True)
class _Ring:
    """Collects the steps of segments that go round a ring.

    Attributes:
        n: members.
        hop: member i sends to i + hop.
        by_edge: every message a step, with what that message waits for; else a step for all.
    """

    n: int
    hop: int
    by_edge: bool
    steps: list[Step] = field(default_factory=list)

    def half(self, ready: Sequence[Wave] = ()) -> list[Wave]:
        """All n - 1 rounds, begun when members have sent and received `ready`; the last two waves."""
        waves: list[Wave] = []
        for k in range(SEGMENTS * (self.n - 1)):
            before = ready if k < SEGMENTS else waves[k - SEGMENTS : k - SEGMENTS + 1]
            waves.append(self.segment(before, waves[-1:]))
        return waves[-SEGMENTS:]

    def segment(self, ready: Sequence[Wave], last: Sequence[Wave]) -> Wave:
        """All members receive and send a segment when they have done with `ready`, after their `last`."""
        members = np.arange(self.n)
        to = (members + self.hop) % self.n
        each = range(self.n if self.by_edge else 1)  # in one step all have the same steps before
        receivers = to[: len(each)].tolist()
        got, put = [self.got(ready, m) for m in receivers], [self.put(ready, m) for m in receivers]
        noticed = self.wave(to, members, 0.0, got, put)
        arrived, left = [(noticed[m], *self.got(ready, m)) for m in each], [self.put(last, m) for m in each]
        return self.wave(members, to, 1 / (SEGMENTS * self.n), arrived, left)

    def got(self, waves: Sequence[Wave], member: int) -> tuple[int, ...]:
        """What a member received in these waves."""
        return tuple(wave[(member - self.hop) % self.n] for wave in waves)

    def put(self, waves: Sequence[Wave], member: int) -> tuple[int, ...]:
        """What a member sent in these waves."""
        return tuple(wave[member] for wave in waves)

    def wave(
        self,
        src: IntArray,
        dst: IntArray,
        share: float,
        arrived: Sequence[tuple[int, ...]],
        left: Sequence[tuple[int, ...]],
    ) -> Wave:
        """Messages side by side, each with what must have arrived and left before it; their steps."""
        first, stage = len(self.steps), self.steps[-1].stage + 1 if self.steps else 0
        if not self.by_edge:
            before = [tuple(sorted(set().union(*each))) for each in (arrived, left)]
            self.steps.append(Step(Part(src, dst, share), before[0], before[1], stage))
            return [first] * len(src)
        for e in range(len(src)):
            one = part(src[e : e + 1], dst[e : e + 1], share)
            self.steps.append(Step(one, arrived[e], left[e], stage))
        return list(range(first, len(self.steps)))


def all_reduce(n: int, by_edge: bool) -> Plan:
    """Reduce-scatter, then all-gather, towards the lower member."""
    ring = _Ring(n, -1, by_edge)
    ring.half(ring.half())
    return Plan(tuple(ring.steps), together=True)


def all_gather(n: int, by_edge: bool) -> Plan:
    """Each member begins with a chunk and ends with all."""
    ring = _Ring(n, 1, by_edge)
    ring.half()
    return Plan(tuple(ring.steps), together=True)


def reduce(n: int, root: int, by_edge: bool) -> Plan:
    """Reduce-scatter, then all chunks to the root at once."""
    ring = _Ring(n, -1, by_edge)
    last = ring.half()
    others = [m for m in range(n) if m != root]
    src, dst = np.array(others), np.full(n - 1, root)
    noticed = ring.wave(dst, src, 0.0, [ring.got(last, root)] * (n - 1), [ring.put(last, root)] * (n - 1))
    arrived = [(noticed[e], *ring.got(last, m)) for e, m in enumerate(others)]
    ring.wave(src, dst, 1 / n, arrived, [ring.put(last, m) for m in others])
    return Plan(tuple(ring.steps), together=True)


def notice(receiver: int, sender: int) -> Step:
    """A receiver is ready, whether the sender has come or not."""
    return Step(part([receiver], [sender], 0.0), members=(receiver,))


def broadcast(n: int, root: int) -> Plan:
    """The root's buffer goes to all."""
    edges = binomial.edges(n)
    steps = [notice((child + root) % n, (parent + root) % n) for _, parent, child in edges]
    has: dict[int, tuple[int, ...]] = {0: ()}  # the step that brings a member the buffer
    depth = {0: 0}
    for number, (_, parent, child) in enumerate(edges):
        has[child], depth[child] = (len(steps),), depth[parent] + 1
        one = part([(parent + root) % n], [(child + root) % n], 1.0)
        steps.append(Step(one, (number, *has[parent]), stage=depth[child]))
    return Plan(tuple(steps))


def all_to_all(n: int) -> Plan:
    """Notices from everybody to everybody, then the parts."""
    return in_phases([_notices(everybody(n)), everybody(n)])


def exchange(n: int) -> Plan:
    """Pairs swap their buffers; both have posted their receives first."""
    if n % 2:
        raise ValueError(f"an exchange needs pairs, found {n} members")
    ways = [(i, i ^ 1) for i in range(n)]
    steps = [notice(dst, src) for src, dst in ways]
    steps += [Step(part([src], [dst], 1.0), (e,), stage=1) for e, (src, dst) in enumerate(ways)]
    return Plan(tuple(steps))


def barrier(n: int) -> Plan:
    """Dissemination, each round a rendezvous."""
    members = np.arange(n)
    rounds = [Part(members, np.roll(members, -(2**r)), 0.0) for r in range((n - 1).bit_length())]
    return in_phases([each for one in rounds for each in (_notices(one), one)])


def _notices(messages: Part) -> Part:
    """What receivers tell senders first."""
    return Part(messages.dst, messages.src, 0.0)
