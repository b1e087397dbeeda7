"""A small transformer that predicts the next character of Python's own help texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, final

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from simulator.fabric import FloatArray
from simulator.problems.base import Block, DataProblem, Layer, uniform_start
from simulator.problems.batches import IntArray
from simulator.problems.digits import Classified
from simulator.problems.help_texts import EVALUATED, SYMBOLS, windows
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["CharTransformer"]


@final
class CharTransformer(DataProblem):
    """Pre-norm decoder (GPT-2's arrangement) on windows of `context` characters; the test is the last tenth.

    Loss and accuracy are per character, over at most 256 evenly spaced windows of the split.
    """

    kind: Literal["char_transformer"] = "char_transformer"
    batch: PositiveInt | Literal["full"] = 8
    context: PositiveInt = Field(32, description="characters of a sample")
    width: PositiveInt = Field(32, description="entries of a character's vector")
    heads: PositiveInt = 4
    depth: PositiveInt = Field(2, description="blocks of attention and dense layers")

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.width % self.heads:
            raise ValueError(
                f"found heads: {self.heads} for width: {self.width}; expected a divisor of the width"
            )
        return self

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss and accuracy."""
        return ("loss", "accuracy")

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Embeddings, the layers' tensors, last normalisation, output weights."""
        w = self.width
        return (
            Block((SYMBOLS, w), 0.1),
            Block((self.context, w), 0.1),
            *(block for _ in range(self.depth) for block in _layer_blocks(w)),
            *_norm(w),
            Block((w, SYMBOLS), w**-0.5),
        )

    @property
    def parameters(self) -> int:
        """All blocks' entries."""
        return sum(block.size for block in self.blocks)

    @property
    def samples(self) -> int:
        """Windows of the first nine tenths of the text."""
        return len(windows(self.context)[0])

    def labels(self) -> IntArray:
        """In which tenth of the training text a window lies."""
        return np.arange(self.samples) * 10 // self.samples

    def layers(self) -> tuple[Layer, ...]:
        """Embedding, blocks, output."""
        t, w = self.context, self.width
        return (
            Layer("embedding", "embedding", (SYMBOLS + t) * w, float(t * w), 2.0 * t * w),
            *(layer for number in range(self.depth) for layer in _layer_costs(str(number + 1), t, w)),
            Layer("norm", "normalisation", 2 * w, 8.0 * t * w, 2.0 * t * w),
            Layer("output", "matmul", w * SYMBOLS, 2.0 * t * w * SYMBOLS, t * (w + SYMBOLS)),
            Layer("softmax", "softmax", 0, 5.0 * t * SYMBOLS, 2.0 * t * SYMBOLS),
        )

    def initial(self, draws: Draws) -> FloatArray:
        """Uniform; dense weights within 1 / sqrt(inputs), embeddings within 0.1."""
        return uniform_start(self.blocks, draws)

    def task(self, dtype: str, n_workers: int) -> Task:
        """One gradient after the other, by autograd."""
        from simulator.maths.char_transformer import Decoder
        from simulator.maths.looped import Looped

        train, test = windows(self.context)
        data = Classified(train[:, :-1], train[:, 1:], test[:, :-1], test[:, 1:])
        decoder = Decoder(self.heads, self.depth)
        return Looped([block.shape for block in self.blocks], decoder.logits, data, dtype, EVALUATED)


def _norm(w: int) -> tuple[Block, Block]:
    return Block((w,), 0.0, 1.0), Block((w,), 0.0)


def _layer_blocks(w: int) -> tuple[Block, ...]:
    """Norm, queries-keys-values, projection, norm, dense up, dense down."""
    return (
        *_norm(w),
        Block((w, 3 * w), w**-0.5),
        Block((w, w), w**-0.5),
        *_norm(w),
        Block((w, 4 * w), w**-0.5),
        Block((4 * w,), 0.0),
        Block((4 * w, w), (4 * w) ** -0.5),
        Block((w,), 0.0),
    )


def _layer_costs(name: str, t: int, w: int) -> tuple[Layer, ...]:
    """One block on t characters."""
    return (
        Layer(f"norm{name}a", "normalisation", 2 * w, 8.0 * t * w, 2.0 * t * w),
        Layer(f"qkv{name}", "matmul", 3 * w * w, 6.0 * t * w * w, 4.0 * t * w),
        Layer(f"attention{name}", "matmul", 0, 4.0 * t * t * w, 4.0 * t * w),
        Layer(f"projection{name}", "matmul", w * w, 2.0 * t * w * w, 2.0 * t * w),
        Layer(f"norm{name}b", "normalisation", 2 * w, 8.0 * t * w, 2.0 * t * w),
        Layer(f"up{name}", "matmul", 4 * w * (w + 1), 8.0 * t * w * w, 5.0 * t * w),
        Layer(f"gelu{name}", "elementwise", 0, 32.0 * t * w, 8.0 * t * w),
        Layer(f"down{name}", "matmul", (4 * w + 1) * w, 8.0 * t * w * w, 5.0 * t * w),
    )
