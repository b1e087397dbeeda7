"""Transformers: GPT-2, GPT-Neo, BERT, ViT; attention as its products and softmax, kernel by kernel.

Radford et al., "Language models are unsupervised multitask learners", 2019 (GPT-2; the output shares the
embedding's weights); Black et al., "GPT-Neo", 2021, and Eldan, Li, "TinyStories", arXiv 2305.07759 (8M; no
biases of queries, keys and values; windows of local attention are masks, so they cost as much as full
attention); Devlin et al., "BERT", NAACL 2019 (pre-training: masked words and next sentence; 20 of 128 places
are predicted); Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021 (ViT-B/16).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention


@dataclass(frozen=True)
class Shape:
    """Of a stack of layers.

    Attributes:
        width: entries of a symbol's vector.
        heads: of attention.
        depth: layers.
        biased: whether queries, keys and values have biases.
        causal: whether a symbol sees earlier ones only.
        norm_first: whether normalisation comes before what is added (GPT-2, ViT), not after (BERT).
    """

    width: int
    heads: int
    depth: int
    biased: bool = True
    causal: bool = False
    norm_first: bool = True


class Attention(nn.Module):
    """Self-attention."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.causal = shape.heads, shape.causal
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=shape.biased)
        self.projection = nn.Linear(shape.width, shape.width)

    def forward(self, x_BTW: Tensor) -> Tensor:
        """(B, T, W) to (B, T, W)."""
        heads = self.qkv(x_BTW).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=self.causal)
        out: Tensor = self.projection(mixed.transpose(1, 2).flatten(-2))
        return out


class Layer(nn.Module):
    """Attention and two dense layers, each added to its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm_first = shape.norm_first
        self.norm_a, self.norm_b = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.up, self.down = nn.Linear(shape.width, 4 * shape.width), nn.Linear(4 * shape.width, shape.width)

    def forward(self, x_BTW: Tensor) -> Tensor:
        """(B, T, W) to (B, T, W)."""
        if self.norm_first:
            x_BTW = x_BTW + self.attention(self.norm_a(x_BTW))
            return x_BTW + self._dense(self.norm_b(x_BTW))
        x_BTW = self.norm_a(x_BTW + self.attention(x_BTW))
        out: Tensor = self.norm_b(x_BTW + self._dense(x_BTW))
        return out

    def _dense(self, x_BTW: Tensor) -> Tensor:
        out: Tensor = self.down(gelu(self.up(x_BTW)))
        return out


def _stack(shape: Shape) -> nn.Sequential:
    return nn.Sequential(*(Layer(shape) for _ in range(shape.depth)))


class Decoder(nn.Module):
    """GPT: predicts the next symbol; the output's weights are the embedding's."""

    def __init__(self, shape: Shape, symbols: int, places: int) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, shape.width), nn.Embedding(places, shape.width)
        self.layers = _stack(shape)
        self.norm = nn.LayerNorm(shape.width)

    def forward(self, symbols_BT: Tensor) -> Tensor:
        """(B, T) symbols to (B, T, all symbols) scores."""
        places = torch.arange(symbols_BT.shape[1], device=symbols_BT.device)
        x_BTW = self.norm(self.layers(self.symbols(symbols_BT) + self.places(places)))
        return linear(x_BTW, self.symbols.weight)


GPT_SYMBOLS = 50_257


def _gpt2(width: int, heads: int, depth: int) -> nn.Module:
    return Decoder(Shape(width, heads, depth, causal=True), GPT_SYMBOLS, 1024)


def gpt2() -> nn.Module:
    """GPT-2: 124,439,808 parameters."""
    return _gpt2(768, 12, 12)


def gpt2_medium() -> nn.Module:
    """GPT-2 medium: 354,823,168 parameters."""
    return _gpt2(1024, 16, 24)


def gpt2_large() -> nn.Module:
    """GPT-2 large: 774,030,080 parameters."""
    return _gpt2(1280, 20, 36)


def gpt2_xl() -> nn.Module:
    """GPT-2 XL: 1,557,611,200 parameters."""
    return _gpt2(1600, 25, 48)


def _gpt_neo(width: int, heads: int, depth: int) -> nn.Module:
    return Decoder(Shape(width, heads, depth, biased=False, causal=True), GPT_SYMBOLS, 2048)


def gpt_neo_8m() -> nn.Module:
    """GPT-Neo of TinyStories-8M (8 M are counted without most of the embedding): 19,702,528 parameters."""
    return _gpt_neo(256, 16, 8)


def gpt_neo_125m() -> nn.Module:
    """GPT-Neo 125M: 125,198,592 parameters."""
    return _gpt_neo(768, 12, 12)


class Told(NamedTuple):
    """What BERT's pre-training predicts: masked words (B, P, words), whether the second sentence follows."""

    words: Tensor
    follows: Tensor


class Bert(nn.Module):
    """BERT with both heads of its pre-training."""

    words, places, predicted = 30_522, 512, 20

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        w = shape.width
        self.symbols, self.position = nn.Embedding(self.words, w), nn.Embedding(self.places, w)
        self.segment, self.norm = nn.Embedding(2, w), nn.LayerNorm(w)
        self.layers = _stack(shape)
        self.pooler, self.follows = nn.Linear(w, w), nn.Linear(w, 2)
        self.transform, self.last_norm = nn.Linear(w, w), nn.LayerNorm(w)
        self.bias = nn.Parameter(torch.zeros(self.words))

    def forward(self, symbols_BT: Tensor) -> Told:
        """(B, T) symbols to scores; the first places stand for those that are masked."""
        places = torch.arange(symbols_BT.shape[1], device=symbols_BT.device)
        segments = torch.zeros_like(symbols_BT)
        x_BTW = self.symbols(symbols_BT) + self.position(places) + self.segment(segments)
        x_BTW = self.layers(self.norm(x_BTW))
        hidden = self.last_norm(gelu(self.transform(x_BTW[:, : self.predicted])))
        words = linear(hidden, self.symbols.weight, self.bias)
        return Told(words, self.follows(torch.tanh(self.pooler(x_BTW[:, 0]))))


def bert_base() -> nn.Module:
    """BERT-base (uncased): 109,482,240 parameters of the encoder, 110,106,428 with the heads."""
    return Bert(Shape(768, 12, 12, norm_first=False))


def bert_large() -> nn.Module:
    """BERT-large (uncased): 335,141,888 parameters of the encoder, 336,226,108 with the heads."""
    return Bert(Shape(1024, 16, 24, norm_first=False))


class VisionTransformer(nn.Module):
    """ViT: patches as symbols behind one for the class."""

    def __init__(self, shape: Shape, side: int, patch: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, shape.width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, shape.width))
        self.places = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, shape.width))
        self.layers = _stack(shape)
        self.norm, self.classifier = nn.LayerNorm(shape.width), nn.Linear(shape.width, classes)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """(B, 3, H, W) to (B, classes)."""
        patches = self.patches(x_BCHW).flatten(2).transpose(1, 2)
        x_BTW = torch.cat([self.token.expand(len(patches), -1, -1), patches], dim=1) + self.places
        scores: Tensor = self.classifier(self.norm(self.layers(x_BTW))[:, 0])
        return scores


def vit_b_16() -> nn.Module:
    """ViT-B/16 on ImageNet: 86,567,656 parameters."""
    return VisionTransformer(Shape(768, 12, 12), 224, 16, 1000)
