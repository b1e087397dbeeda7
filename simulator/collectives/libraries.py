"""Which algorithms a library of collectives takes, and which one for which size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

GLOO: Mapping[str, str] = MappingProxyType(
    {
        "all_reduce": "gloo_ring",
        "reduce_scatter": "gloo_ring",
        "all_gather": "gloo_ring",
        "broadcast": "gloo_broadcast",
        "reduce": "gloo_ring",
        "all_to_all": "gloo_direct",
        "exchange": "gloo_pairs",
        "barrier": "gloo_dissemination",
    }
)
NCCL: Mapping[str, str] = MappingProxyType({"all_reduce": "nccl_auto"})

LIBRARIES: Mapping[str, Mapping[str, str]] = MappingProxyType({"none": {}, "gloo": GLOO, "nccl": NCCL})
"""What each library does otherwise than the defaults."""

MPI_LIMIT = 10_000
"""Bytes of the buffer below which Open MPI's fixed rules take recursive doubling, else a ring.

ompi/mca/coll/tuned/coll_tuned_decision_fixed.c of 1.6.5, from measurements of the Grig cluster at UTK. Here
halving and doubling stands for it: twice its latencies, fewer bytes.
"""

NCCL_LIMITS: tuple[tuple[int, int], ...] = (
    (8, 2**15),
    (16, 2**17),
    (32, 2**18),
    (64, 2**24),
    (128, 2**26),
    (256, 2**29),
)
"""(members at least, bytes of the buffer below which NCCL takes trees); rings else, and for fewer members.

Where the estimates of src/graph/tuning.cc of NCCL 2.8 change over, to a power of two: one GPU a host, a
network of 12 GB/s, the protocols LL and Simple. NCCL works it out from what it finds the machine to have:
with 24 GB/s limits are up to eight times as high. Where that matters, name the algorithm.
"""


def _mpi(n: int, nbytes: float) -> str:
    return "halving_doubling" if nbytes < MPI_LIMIT else "ring"


def _nccl(n: int, nbytes: float) -> str:
    limit = max((limit for members, limit in NCCL_LIMITS if n >= members), default=0)
    return "double_tree" if nbytes < limit else "nccl_ring"


BY_SIZE: Mapping[tuple[str, str], Callable[[int, float], str]] = MappingProxyType(
    {("all_reduce", "auto"): _mpi, ("all_reduce", "nccl_auto"): _nccl}
)
"""(operation, choice) -> the algorithm for n members and so many bytes."""


def chosen(op: str, algorithm: str, nbytes: float, n: int) -> str:
    """The algorithm of a call: itself, unless it stands for a choice by size.

    >>> chosen("all_reduce", "auto", 4096, 8), chosen("all_reduce", "auto", 1e6, 8)
    ('halving_doubling', 'ring')
    >>> chosen("all_reduce", "nccl_auto", 1e6, 16), chosen("all_reduce", "nccl_auto", 1e6, 64)
    ('nccl_ring', 'double_tree')
    """
    choice = BY_SIZE.get((op, algorithm))
    return choice(n, nbytes) if choice else algorithm
