"""The forward pass of the small recurrent network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding


@dataclass(frozen=True)
class Recurrent:
    """Layers of LSTM cells, from left to right.

    Attributes:
        cells: of each layer.
        depth: layers.
    """

    cells: int
    depth: int

    def logits(self, tensors: Sequence[Tensor], symbols: Tensor) -> Tensor:
        """Scores (batch, context, symbols) of the next character after each.

        Args:
            tensors: embedding; four a layer, as torch's LSTM has them; output weights and biases.
            symbols: shape (batch, context).
        """
        table, *layers, weight, bias = tensors
        nothing = table.new_zeros(self.depth, len(symbols), self.cells)
        hidden, _, _ = torch.lstm(
            embedding(symbols, table), (nothing, nothing), layers, True, self.depth, 0.0, False, False, True
        )
        return hidden @ weight.T + bias
