"""What one gradient computes, as columns: the operations of a model's forward and backward pass.

All amounts are of one sample, except those that do not grow with the batch (`fixed`: weights read, their
gradients written). They are counts of values and FLOP (one multiply-add is two), not seconds: a device
profile gives the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import FloatArray, IntArray

Dtype = Literal["fp64", "fp32", "tf32", "fp16", "bf16"]
"""Types of numbers computed in; tf32 is kept in 4 bytes."""

BYTES: dict[str, int] = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
"""Size of a number of each type."""

Kind = Literal[
    "matmul", "convolution", "elementwise", "normalisation", "softmax", "pooling", "embedding", "optimiser"
]
"""Kinds of operations; a device profile has an efficiency for each."""

KINDS: tuple[str, ...] = get_args(Kind)


class Operation(NamedTuple):
    """One kernel.

    Attributes:
        layer: number of the layer it belongs to.
        backward: whether it belongs to the backward pass.
        kind: as in `Kind`.
        flop: for each sample.
        values: numbers read and written for each sample.
        fixed: numbers read and written whatever the batch.
        kept: numbers for each sample that stay in memory from here to the backward pass.
    """

    layer: int
    backward: bool
    kind: str
    flop: float = 0.0
    values: float = 0.0
    fixed: float = 0.0
    kept: float = 0.0


@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of one gradient in the order in which they run.

    Attributes:
        layers: names, in forward order.
        parameters: of each layer, shape (layers,).
        layer, backward, kind, flop, values, fixed, kept: of each operation, as in `Operation`, shape
        (operations,).
    """

    layers: tuple[str, ...]
    parameters: IntArray
    layer: IntArray
    backward: NDArray[np.bool_]
    kind: tuple[str, ...]
    flop: FloatArray
    values: FloatArray
    fixed: FloatArray
    kept: FloatArray = field(repr=False)

    @classmethod
    def of(
        cls, layers: Sequence[str], parameters: Sequence[int], operations: Sequence[Operation]
    ) -> Operations:
        """From one record an operation."""
        columns = list(zip(*operations, strict=True)) or [()] * 7
        return cls(
            tuple(layers),
            np.array(parameters, dtype=np.int64),
            np.array(columns[0], dtype=np.int64),
            np.array(columns[1], dtype=bool),
            tuple(columns[2]),
            *(np.array(column, dtype=np.float64) for column in columns[3:]),
        )

    @classmethod
    def from_layers(cls, layers: Sequence[tuple[str, int, float]], kind: str = "matmul") -> Operations:
        """From plain numbers: (name, parameters, forward FLOP of a sample) of each layer.

        The backward pass of a layer is two operations of that size, the gradients by its input and by its
        weights (the first layer needs no gradient by its input). Values moved: the weights, once in each
        operation.
        """
        forward = [
            Operation(i, False, kind, flop, 0.0, weights) for i, (_, weights, flop) in enumerate(layers)
        ]
        backward = [
            Operation(i, True, kind, flop, 0.0, weights)
            for i, (_, weights, flop) in reversed(list(enumerate(layers)))
            for _ in range(1 if i == 0 else 2)
        ]
        names, parameters, _ = zip(*layers, strict=True)
        return cls.of(names, parameters, forward + backward)

    @classmethod
    def from_numbers(cls, parameters: int, flop_per_sample: float) -> Operations:
        """A model known by its size and the FLOP of a sample's gradient (a third forward): one layer."""
        forward = Operation(0, False, "matmul", flop_per_sample / 3, 0.0, parameters)
        backward = Operation(0, True, "matmul", flop_per_sample * 2 / 3, 0.0, 2 * parameters)
        return cls.of(("model",), (parameters,), (forward, backward))

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def total_parameters(self) -> int:
        """Parameters of the model."""
        return int(self.parameters.sum())

    @cached_property
    def flop_per_sample(self) -> float:
        """FLOP of one sample, forward and backward."""
        return float(self.flop.sum())

    @cached_property
    def forward_flop(self) -> float:
        """FLOP of one sample, forward only."""
        return float(self.flop[~self.backward].sum())

    def rows(self) -> list[Operation]:
        """One record an operation."""
        numbers = (self.flop, self.values, self.fixed, self.kept)
        columns = (self.layer.tolist(), self.backward.tolist(), self.kind, *(c.tolist() for c in numbers))
        return [Operation(*row) for row in zip(*columns, strict=True)]
