"""The forward pass of the small transformer: pre-norm decoder as GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, scaled_dot_product_attention

PER_LAYER = 10  # tensors


@dataclass(frozen=True)
class Decoder:
    """Attends to earlier characters only.

    Attributes:
        heads: attention heads.
        depth: layers.
    """

    heads: int
    depth: int

    def logits(self, tensors: Sequence[Tensor], symbols: Tensor) -> Tensor:
        """Scores (batch, context, symbols) of the next character after each.

        Args:
            tensors: embeddings of symbols and places, ten a layer, last scale and shift, output weights.
            symbols: shape (batch, context).
        """
        table, places, scale, shift, output = *tensors[:2], *tensors[-3:]
        x = embedding(symbols, table) + places
        for number in range(self.depth):
            x = self._layer(tensors[2 + number * PER_LAYER : 2 + (number + 1) * PER_LAYER], x)
        return layer_norm(x, x.shape[-1:], scale, shift) @ output

    def _layer(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        scale1, shift1, qkv, projection, scale2, shift2, up, up_bias, down, down_bias = tensors
        x = x + self._attention(layer_norm(x, x.shape[-1:], scale1, shift1) @ qkv) @ projection
        hidden = gelu(layer_norm(x, x.shape[-1:], scale2, shift2) @ up + up_bias)
        return x + hidden @ down + down_bias

    def _attention(self, qkv: Tensor) -> Tensor:
        """Causal attention, (batch, context, 3 width) -> (batch, context, width)."""
        by_head = (*qkv.shape[:2], self.heads, -1)
        q, k, v = (part.reshape(by_head).transpose(1, 2) for part in qkv.chunk(3, -1))
        return scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
