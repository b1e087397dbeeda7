"""Recursive halving-doubling: swap halves, then quarters, ... with partners ever nearer, then gather back.

n = 2^L members: round k = 0 .. L-1 swaps S / 2^(k+1) with the member n / 2^(k+1) away; the gather runs the
rounds backwards. 2 L a + 2 (n-1)/n S/B on a quiet star. Other n: the excess members give their buffers to a
partner first and get the result last, + 2 (a + S/B) on n' = 2^floor(log2 n). Rabenseifner, "Optimization of
Collective Reduction Operations", ICCS 2004; Thakur, Rabenseifner and Gropp (2005), section 4.

Arrival rule: starts when the last member has come; all leave together.

A pair begins a round when both have ended the one before. In bundles that is so up to `MOST_PAIRED` members;
above, a round is one bundle of all pairs, with a barrier between rounds.
"""

from __future__ import annotations

import numpy as np

from simulator.collectives.plan import Part, Plan, Step, in_phases, part

MOST_PAIRED = 16


def swap(n: int, distance: int, share: float) -> Part:
    """All members of a power of two swap with the partner at `distance`."""
    members = np.arange(n)
    return Part(members, members ^ distance, share)


def rounds(n: int) -> list[Part]:
    """Halving, doubling, and the fold of what exceeds a power of two."""
    core = 1 << (n.bit_length() - 1)
    near = np.arange(n - core)
    halving = [swap(core, core >> k, 0.5**k) for k in range(1, core.bit_length())]
    found = halving + halving[::-1]
    if n > core:
        found = [Part(near + core, near, 1.0), *found, Part(near, near + core, 1.0)]
    return found


def pair_by_pair(parts: list[Part]) -> Plan:
    """Each pair a step, after the steps before of both members."""
    last: dict[int, int] = {}
    steps: list[Step] = []
    for stage, each in enumerate(parts):
        now: dict[int, int] = {}
        pairs = sorted({(min(e), max(e)) for e in zip(each.src.tolist(), each.dst.tolist(), strict=True)})
        both_ways = len(pairs) < len(each.src)
        for low, high in pairs:
            if both_ways:
                one = part([low, high], [high, low], each.share)
            else:
                folds_in = high in each.src
                one = part([high if folds_in else low], [low if folds_in else high], each.share)
            before = tuple(sorted({last[m] for m in (low, high) if m in last}))
            now[low] = now[high] = len(steps)
            steps.append(Step(one, before, stage=stage))
        last.update(now)
    return Plan(tuple(steps), together=True)


def all_reduce(n: int) -> Plan:
    """Pair by pair for small groups, round by round for large ones."""
    return pair_by_pair(rounds(n)) if n <= MOST_PAIRED else in_phases(rounds(n))
