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


def server(n: int, nbytes: float, bandwidth: float, latency: float) -> float:
    """All n workers push to a server on its own host, and pull: 2 a + 2 n S/B."""
    return 2 * latency + 2 * n * nbytes / bandwidth


def least_seconds(bytes_out: FloatArray, rate: FloatArray) -> float:
    """(bytes out of the busiest port) / (port rate): nothing finishes before. Shapes (ports,)."""
    return float(np.max(bytes_out / rate, initial=0.0))
