"""What one gradient computes, as columns: the operations of a model's forward and backward pass.

All amounts are of one sample, except those that do not grow with the batch (`fixed`: weights read, their
gradients written). They are counts of values and FLOP (one multiply-add is two), not seconds: a device
profile gives the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, get_args

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


class LayerCost(Protocol):
    """A layer as problems describe theirs: the forward pass of one sample."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def kind(self) -> str:
        """Kind of operation."""

    @property
    def parameters(self) -> int:
        """Numbers it learns."""

    @property
    def flop(self) -> float:
        """FLOP."""

    @property
    def elements(self) -> float:
        """Numbers read and written, without the parameters."""


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
    def of_layers(cls, layers: Sequence[LayerCost]) -> Operations:
        """A model by its layers, known by their forward pass only.

        The backward pass of a layer with parameters is two operations of that size, the gradients by its
        inputs and by its parameters; that of another layer is one of twice the size. Half of what a layer
        moves is what it writes, and is kept.
        """
        rows = [
            Operation(i, False, layer.kind, layer.flop, layer.elements, layer.parameters, layer.elements / 2)
            for i, layer in enumerate(layers)
        ]
        for i, layer in reversed(list(enumerate(layers))):
            if layer.parameters:
                once = Operation(i, True, layer.kind, layer.flop, layer.elements, layer.parameters)
                rows += [once, once]
            else:
                rows.append(Operation(i, True, layer.kind, 2 * layer.flop, 2 * layer.elements))
        return cls.of([layer.name for layer in layers], [layer.parameters for layer in layers], rows)

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
