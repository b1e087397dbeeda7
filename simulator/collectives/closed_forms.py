"""What each collective takes on a quiet star: n ranks, one a host, all there at once.

Symbols: n members; S bytes of the full buffer; B bytes/s per direction of a host's link; a seconds of one-way
latency from host to host; L = ceil(log2 n). Results in seconds. A group of one takes no time.

These are the formulas that `flows`, `bundles` and `closed_form` meet to 1e-9 (tests/validation); the engine
does not use them.
"""

from __future__ import annotations

import numpy as np

from simulator.fabric import FloatArray


def message(nbytes: float, bandwidth: float, latency: float) -> float:
    """One message: a + S/B; also a pair exchange, both ways at once.

    >>> message(1e6, 1e9, 2e-6)
    0.001002
    """
    return latency + nbytes / bandwidth


def ring_all_reduce(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """2 (n-1) (a + S / (n B)).

    >>> round(ring_all_reduce(8, 8e6, 1e9, 1e-6), 9)
    0.014014
    """
    return 2 * ring_half(n, nbytes, bandwidth, latency)


def ring_half(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """Reduce-scatter or all-gather by ring: (n-1) (a + S / (n B))."""
    return (n - 1) * (latency + nbytes / (n * bandwidth))


def uneven_ring(latency: FloatArray, rate: FloatArray, chunk: float, rounds: int, send_ends: str) -> float:
    """A ring whose edges have latencies a_i and rates r_i (bytes/s), shape (n,), for chunks of s bytes.

    `left`: rounds * max(s / r_min, mean_i(a_i + s / r_i)); `arrived`: rounds * max_i(a_i + s / r_i).
    In the limit of many rounds; message by message a ring of few members is up to a tenth apart.
    """
    pace = latency + chunk / rate
    if send_ends == "arrived":
        return float(rounds * pace.max())
    return float(rounds * max((chunk / rate).max(), pace.mean()))


def halving_doubling(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """2 L a + 2 (n-1)/n S/B for n = 2^L; other n fold their excess: + 2 (a + S/B) on n' = 2^floor(log2 n)."""
    core = 1 << (n.bit_length() - 1)
    fold = 2 * message(nbytes, bandwidth, latency) if n > core else 0.0
    return 2 * (core.bit_length() - 1) * latency + 2 * (core - 1) / core * nbytes / bandwidth + fold


def binomial(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """Broadcast or reduce, one child at a time: L (a + S/B)."""
    return (n - 1).bit_length() * message(nbytes, bandwidth, latency)


def all_to_all(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """All at once: a + (n-1)/n S/B."""
    return latency + (n - 1) / n * nbytes / bandwidth if n > 1 else 0.0


def direct_all_reduce(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """Scatter, then gather, each all at once: 2 (a + (n-1)/n S/B)."""
    return 2 * all_to_all(n, nbytes, bandwidth, latency)


def barrier(n: int, latency: float) -> float:
    """Dissemination: L a."""
    return (n - 1).bit_length() * latency


def tree_all_reduce(
    n: int, nbytes: float, bandwidth: float, latency: float, chunks: int, send_ends: str = "left"
) -> float:
    """Binary tree in c chunks: derived in `simulator.collectives.tree`.

    With D = floor(log2 n), t = S / (c B), e = 1 if n = 2^D else 0: 2 D a + 2 (2 (D + c - 1) - e) t, and
    2 ((D + c - 1)(2 t + a) - e t) if a send ends on arrival; a lone child has its parent's port for itself.

    >>> tree_all_reduce(7, 4e6, 1e9, 0.0, chunks=4)
    0.02
    """
    depth, t = n.bit_length() - 1, nbytes / (chunks * bandwidth)
    if n <= 2:
        up = chunks * (t + latency) if send_ends == "arrived" else chunks * t + latency
        return 2 * up * depth
    saved = t if n == 1 << depth else 0.0
    if send_ends == "arrived":
        return 2 * ((depth + chunks - 1) * (2 * t + latency) - saved)
    return 2 * (depth * latency + (depth + chunks - 1) * 2 * t - saved)


def double_tree_all_reduce(
    n: int, nbytes: float, bandwidth: float, latency: float, chunks: int, send_ends: str = "left"
) -> float:
    """Two mirrored trees at once: a tree's time for S/2."""
    return tree_all_reduce(n, nbytes / 2, bandwidth, latency, chunks, send_ends)


def hierarchical_all_reduce(hosts: int, each: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """On m hosts of g members, a link each: reduce-scatter(g) + all-reduce(m, S/g) + all-gather(g)."""
    inside = 2 * ring_half(each, nbytes, bandwidth, latency)
    return inside + ring_all_reduce(hosts, nbytes / each, bandwidth, latency)


def gloo_half(n: int, nbytes: float, bandwidth: float, latency: float, send_ends: str = "left") -> float:
    """Gloo's ring, n - 1 rounds of two segments: (n-1) max(t + 2 a, 2 t) + min(t, 2 a), t = S / (2 n B).

    Also its all-gather. See `simulator.collectives.gloo`; if a send ends on arrival a + 2 (n-1)(t + a).

    >>> round(gloo_half(8, 16e6, 1e9, 1e-4), 9)
    0.0142
    """
    t = nbytes / (2 * n * bandwidth)
    if n == 1:
        return 0.0
    if send_ends == "arrived":
        return latency + 2 * (n - 1) * (t + latency)
    return (n - 1) * max(t + 2 * latency, 2 * t) + min(t, 2 * latency)


def gloo_all_reduce(
    n: int, nbytes: float, bandwidth: float, latency: float, send_ends: str = "left"
) -> float:
    """Gloo's all-reduce, and its reduce-scatter: two halves, one after the other."""
    return 2 * gloo_half(n, nbytes, bandwidth, latency, send_ends)


def gloo_reduce(n: int, nbytes: float, bandwidth: float, latency: float, send_ends: str = "left") -> float:
    """Gloo's reduce: a half, then all chunks to the root at once, + 2 a + (n-1)/n S/B."""
    gather = 2 * latency + (n - 1) / n * nbytes / bandwidth if n > 1 else 0.0
    return gloo_half(n, nbytes, bandwidth, latency, send_ends) + gather


def gloo_broadcast(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """Gloo's broadcast: a notice, then m_p S/B + a for each parent p on the slowest path of a binomial tree.

    m_p children share their parent's port. For n = 2^L: (L+1) a + L (L+1)/2 S/B.

    >>> round(gloo_broadcast(8, 1e6, 1e9, 1e-4), 9)
    0.0064
    """
    levels = (n - 1).bit_length()
    children = [[i + 2**r for r in range(i.bit_length(), levels) if i + 2**r < n] for i in range(n)]
    has = [latency] + [0.0] * (n - 1)
    for i, served in enumerate(children):
        for child in served:
            has[child] = has[i] + len(served) * nbytes / bandwidth + latency
    return max(has) if n > 1 else 0.0


def gloo_all_to_all(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """Gloo's all-to-all: all notices, then all parts: 2 a + (n-1)/n S/B."""
    return 2 * latency + (n - 1) / n * nbytes / bandwidth if n > 1 else 0.0


def rendezvous(nbytes: float, bandwidth: float, latency: float) -> float:
    """A message that waits for its receiver's notice, and a pair exchange of such: 2 a + S/B."""
    return 2 * latency + nbytes / bandwidth


def gloo_barrier(n: int, latency: float) -> float:
    """Gloo's barrier: L rounds of a notice and an empty message, 2 L a."""
    return 2 * barrier(n, latency)


def nccl_ring(n: int, nbytes: float, bandwidth: float, latency: float, rails: int = 1) -> float:
    """As many rings as a host has rails, S / k each, side by side: 2 (n-1)(a + S / (n k B))."""
    return ring_all_reduce(n, nbytes / rails, bandwidth, latency)


def switch_all_reduce(hosts: int, each: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """Reduction in the switches of m hosts of g members, a link each; across by rings of S / g.

    m = 1: a + S/B; else 2 (a + S/B) + 2 (m-1)(a + S / (g m B)); g = 1: a ring.
    """
    inside = message(nbytes, bandwidth, latency) if each > 1 else 0.0
    return inside * min(hosts, 2) + ring_all_reduce(hosts, nbytes / each, bandwidth, latency)


def three_level_all_reduce(
    groups: int, hosts: int, each: int, nbytes: float, bandwidth: float, latency: float
) -> float:
    """On m groups of h hosts of g members, a link each: rings of g on S, of h on S / g, of m on S / (g h)."""
    inside = ring_all_reduce(each, nbytes, bandwidth, latency)
    among = ring_all_reduce(hosts, nbytes / each, bandwidth, latency)
    return inside + among + ring_all_reduce(groups, nbytes / (each * hosts), bandwidth, latency)


def server(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """All n workers push to a server on its own host, and pull: 2 a + 2 n S/B."""
    return 2 * latency + 2 * n * nbytes / bandwidth


def least_seconds(bytes_out: FloatArray, rate: FloatArray) -> float:
    """(bytes out of the busiest port) / (port rate): nothing finishes before. Shapes (ports,)."""
    return float(np.max(bytes_out / rate, initial=0.0))
