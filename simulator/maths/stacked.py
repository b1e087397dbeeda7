"""Stacked arithmetic of many models at once whose bits do not depend on how many there are.

A BLAS may take another path, and round otherwise, for matrices that begin off a cache line or for a
single matrix-vector product; vectorised functions do so for the last entries, which fill no register. So
every matrix of a stack begins on a cache line and fills whole registers (the stack is padded between
matrices), and a single matrix-vector product is made twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LINE = 64  # bytes of a cache line, and of the widest vector register
FILL = 2 * LINE  # bytes that vectorised loops take at a time


def _padded(entries: int, dtype: torch.dtype) -> int:
    """Entries up to the next multiple of FILL bytes."""
    at_a_time = FILL // dtype.itemsize
    return -(-entries // at_a_time) * at_a_time


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
    ones = torch.ones(1, 1, stack.shape[1], dtype=stack.dtype).expand(len(stack), -1, -1)
    return product(ones, stack)


def row_sums(stack: Tensor) -> Tensor:
    """Sums over the columns, (k, a, b) -> (k, a, 1)."""
    ones = torch.ones(1, stack.shape[2], 1, dtype=stack.dtype).expand(len(stack), -1, -1)
    return product(stack, ones)


def softmax(logits: Tensor) -> Tensor:
    """Exponentials over their sum along the last axis, (k, batch, classes)."""
    shifted = empty(logits.shape, logits.dtype)
    lines = shifted.as_strided((len(shifted), shifted.stride(0)), (shifted.stride(0), 1))
    lines[:, logits[0].numel() :] = 0.0
    torch.sub(logits, logits.amax(-1, keepdim=True), out=shifted)
    lines.exp_()
    return shifted.div_(row_sums(shifted))


def sigmoid(matrix: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), (k, batch)."""
    lines = torch.zeros(len(matrix), _padded(matrix.shape[1], matrix.dtype), dtype=matrix.dtype)
    lines[:, : matrix.shape[1]] = matrix
    return lines.sigmoid_()[:, : matrix.shape[1]]
