"""Torch modules like the models of the small problems (`simulator/problems`), with their default sizes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

SYMBOLS, CONTEXT, WIDTH, HEADS, DEPTH = 97, 32, 32, 4, 2


def digits_mlp() -> nn.Module:
    """Dense 64 - 128 - 10: 9,610 parameters."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def digits_cnn() -> nn.Module:
    """Two convolutions with group normalisation on 8 x 8 pixels, one dense layer: 3,842 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, stride=2, bias=False),
        nn.GroupNorm(2, 16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


class _Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.projection = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x_BTW: Tensor) -> Tensor:
        """(B, T, W) to (B, T, W)."""
        heads = self.qkv(x_BTW).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        out: Tensor = self.projection(mixed.transpose(1, 2).flatten(-2))
        return out


class _Layer(nn.Module):
    """Pre-norm attention and dense layers (GPT-2's arrangement)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = _Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x_BTW: Tensor) -> Tensor:
        """(B, T, W) to (B, T, W)."""
        x_BTW = x_BTW + self.attention(self.norm_a(x_BTW))
        out: Tensor = x_BTW + self.down(gelu(self.up(self.norm_b(x_BTW))))
        return out


class CharTransformer(nn.Module):
    """A decoder of two layers on 32 characters: see `simulator/problems/char_transformer.py`."""

    def __init__(self) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*(_Layer() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, SYMBOLS, bias=False)

    def forward(self, symbols_BT: Tensor) -> Tensor:
        """(B, T) symbols to (B, T, SYMBOLS) scores."""
        places = torch.arange(CONTEXT, device=symbols_BT.device)
        x_BTW = self.symbols(symbols_BT) + self.places(places)
        out: Tensor = self.output(self.norm(self.layers(x_BTW)))
        return out


def char_transformer() -> nn.Module:
    """The decoder: 32,448 parameters."""
    return CharTransformer()
