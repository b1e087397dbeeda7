"""Compression with numbers: what a receiver makes of each worker's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from simulator.compression import Compression, PowerSgd, Qsgd, RandomK, Sign, Stream, TopK, kept, matrix
from simulator.maths.dense import Dense
from simulator.streams import Draws
from simulator.values import Vector


class Outcome(NamedTuple):
    """What becomes of the workers' values, shape (d,) each.

    Attributes:
        arrived: what a receiver decodes.
        left: what it does not; empty if nobody remembers.
        basis: PowerSGD's next Q.
    """

    arrived: list[Tensor]
    left: list[Tensor]
    basis: Tensor | None


def compressed(
    how: Compression,
    stream: Stream,
    ranks: Sequence[int],
    values: Sequence[Tensor],
    weights: Sequence[float] | None,
    draws: Draws,
) -> Outcome:
    """Send values through a compressor.

    Args:
        how: the compressor.
        stream: of the values, as it was before.
        ranks: whose they are.
        values: shape (d,) each.
        weights: of the workers, in PowerSGD's common P.
        draws: the run's.
    """
    remembers = stream.remembers(how)
    if remembers:
        errors = {rank: numbers(stream.errors[rank]) for rank in ranks if rank in stream.errors}
        values = [v + errors.get(rank, 0.0) for rank, v in zip(ranks, values, strict=True)]
    arrived, basis = _codes(how, stream, ranks, values, weights, draws)
    left = [v - c for v, c in zip(values, arrived, strict=True)] if remembers else []
    return Outcome(arrived, left, basis)


def _codes(
    how: Compression,
    stream: Stream,
    ranks: Sequence[int],
    values: Sequence[Tensor],
    weights: Sequence[float] | None,
    draws: Draws,
) -> tuple[list[Tensor], Tensor | None]:
    d, purpose = len(values[0]), f"compression/{stream.name}"
    match how:
        case TopK():
            return [top_k(v, kept(how.share, d)) for v in values], None
        case RandomK():
            chosen = torch.from_numpy(draws.permutation(purpose, stream.uses, d)[: kept(how.share, d)].copy())
            scale = 1.0 if how.error_feedback or stream.persists else d / len(chosen)
            return [only(v, chosen) * scale for v in values], None
        case Sign():
            return [v.abs().mean() * v.sign() for v in values], None
        case Qsgd():
            blocks = [draws.block(purpose, stream.uses, d, rank * d) for rank in ranks]
            rolls = [torch.from_numpy(block).to(values[0].dtype) for block in blocks]
            return [rounded(v, u, how.levels, how.bucket) for v, u in zip(values, rolls, strict=True)], None
        case PowerSgd():
            first = None if stream.basis is None else numbers(stream.basis)
            if first is None:
                first = _first_basis(d, how.rank, draws, purpose).to(values[0].dtype)
            return low_rank(values, first, weights)
    raise TypeError(f"{how!r} has no arithmetic")


def numbers(value: Vector) -> Tensor:
    """Of a remembered value."""
    assert isinstance(value, Dense)
    return value.data


def only(v: Tensor, chosen: Tensor) -> Tensor:
    """The chosen entries, zero elsewhere."""
    sparse = torch.zeros_like(v)
    sparse[chosen] = v[chosen]
    return sparse


def top_k(v: Tensor, k: int) -> Tensor:
    """The k largest entries by size, zero elsewhere."""
    return only(v, v.abs().topk(k).indices)


def rounded(v: Tensor, u: Tensor, levels: int, bucket: int) -> Tensor:
    """Entries at random up or down to multiples of 1/levels of their bucket's largest; u in (0, 1)."""
    d = len(v)
    cells = pad(v, (0, -d % bucket)).view(-1, bucket)
    largest = cells.abs().amax(1, keepdim=True)
    scaled = cells.abs() / largest.clamp_min(torch.finfo(v.dtype).tiny) * levels
    up = pad(u, (0, -d % bucket), value=1.0).view(-1, bucket) < scaled - scaled.floor()
    return ((scaled.floor() + up) * cells.sign() * (largest / levels)).view(-1)[:d]


def low_rank(
    values: Sequence[Tensor], basis: Tensor, weights: Sequence[float] | None
) -> tuple[list[Tensor], Tensor]:
    """P (M^T P)^T for each worker's M, P the orthogonal basis of the mean M Q; and the mean M^T P."""
    d = len(values[0])
    rows, columns = matrix(d)
    matrices = [pad(v, (0, rows * columns - d)).view(rows, columns) for v in values]
    p, _ = torch.linalg.qr(_mean([m @ basis for m in matrices], weights))
    each = [m.T @ p for m in matrices]
    return [(p @ q.T).reshape(-1)[:d] for q in each], _mean(each, weights)


def _mean(tensors: Sequence[Tensor], weights: Sequence[float] | None) -> Tensor:
    total = torch.zeros_like(tensors[0])
    for tensor, weight in zip(tensors, weights or [1.0] * len(tensors), strict=True):
        total += weight * tensor
    return total / (sum(weights) if weights else len(tensors))


def _first_basis(d: int, rank: int, draws: Draws, purpose: str) -> Tensor:
    from scipy.special import ndtri

    columns = matrix(d)[1]
    rank = min(rank, columns)
    return torch.from_numpy(ndtri(draws.block(f"{purpose}/basis", 0, columns * rank))).view(columns, rank)
