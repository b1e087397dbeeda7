"""Matrix products of many models at once whose bits do not depend on how many there are.

A BLAS may take another path, and round otherwise, for matrices that begin off a cache line or for a batch
of one matrix-vector product. So every matrix of a stack begins at a multiple of 64 bytes (the stack is
padded between matrices where needed), and a lone matrix-vector product is made twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LINE = 64  # bytes of a cache line, and of the widest vector registers


def _padded(entries: int, dtype: torch.dtype) -> int:
    """Entries up to the next multiple of a cache line."""
    per_line = LINE // dtype.itemsize
    return -(-entries // per_line) * per_line


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Space for k matrices, each beginning on a cache line: shape (k, rows, columns)."""
    k, rows, columns = shape
    stride = _padded(rows * columns, dtype)
    return torch.empty(k * stride, dtype=dtype).as_strided((k, rows, columns), (stride, columns, 1))


def lined_up(stack: Tensor) -> bool:
    """Whether each matrix of a stack (k, rows, columns) begins on a cache line."""
    step = stack.stride(0) * stack.element_size()
    return step % LINE == 0 and stack.data_ptr() % LINE == 0


def aligned(stack: Tensor) -> Tensor:
    """The stack itself, or a copy in which each matrix begins on a cache line."""
    return stack if lined_up(stack) else empty(stack.shape, stack.dtype).copy_(stack)


def models(flat: Sequence[Tensor]) -> Tensor:
    """Models (d,) as rows that begin on cache lines: (k, d); if all are the same, one row seen k times."""
    first = flat[0]
    width = _padded(first.shape[0], first.dtype)
    same = all(model is first for model in flat)
    rows = torch.empty(1 if same else len(flat), width, dtype=first.dtype)[:, : first.shape[0]]
    if same:
        rows[0].copy_(first)
        return rows.expand(len(flat), -1)
    torch._foreach_copy_(list(rows.unbind()), list(flat))
    return rows


def rows(k: int, d: int, dtype: torch.dtype) -> Tensor:
    """Space for k rows of d entries, each beginning on a cache line: shape (k, d)."""
    return torch.empty(k, _padded(d, dtype), dtype=dtype)[:, :d]


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Matrix products (k, a, b) @ (k, b, c) -> (k, a, c) of `aligned` stacks (or transposes of such)."""
    k, a, c = left.shape[0], left.shape[1], right.shape[2]
    out = empty((k, a, c), left.dtype) if out is None else out
    if k == 1 and 1 in (a, c):
        out.copy_(product(left.expand(2, -1, -1), right.expand(2, -1, -1))[:1])
        return out
    return torch.bmm(left, right, out=out)


def column_sums(stack: Tensor) -> Tensor:
    """Sums over the rows, (k, a, b) -> (k, 1, b)."""
    ones = torch.ones(1, 1, stack.shape[1], dtype=stack.dtype).expand(stack.shape[0], -1, -1)
    return product(ones, stack)


def sigmoid(matrix: Tensor) -> Tensor:
    """1 / (1 + exp(-x)) by rows of (k, b).

    The last entries of an array, those that fill no vector register, take another path with other
    rounding; so rows are padded to whole registers, two at a time.
    """
    padded = torch.zeros(len(matrix), 2 * _padded(-(-matrix.shape[1] // 2), matrix.dtype), dtype=matrix.dtype)
    padded[:, : matrix.shape[1]] = matrix
    return padded.sigmoid_()[:, : matrix.shape[1]]
