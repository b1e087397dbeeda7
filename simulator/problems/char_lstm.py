"""A small recurrent network that predicts the next character of Python's own help texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import numpy as np
from pydantic import Field, PositiveInt

from simulator.fabric import FloatArray
from simulator.problems.base import Block, DataProblem, Layer, uniform_start
from simulator.problems.batches import IntArray
from simulator.problems.digits import Classified
from simulator.problems.help_texts import EVALUATED, SYMBOLS, windows
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["CharLstm"]

GATES = 4


@final
class CharLstm(DataProblem):
    """Layers of LSTM cells (Hochreiter, Schmidhuber 1997) on windows of characters.

    The last tenth is the test. Loss and accuracy are per character, over at most 256 evenly spaced windows of
    the split.
    """

    kind: Literal["char_lstm"] = "char_lstm"
    batch: PositiveInt | Literal["full"] = 8
    context: PositiveInt = Field(32, description="characters of a sample")
    embedding: PositiveInt = Field(32, description="entries of a character's vector")
    cells: PositiveInt = Field(64, description="of each layer")
    depth: PositiveInt = Field(1, description="layers")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss and accuracy."""
        return ("loss", "accuracy")

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Embedding; weights by inputs and by cells and both biases of each layer; output weights, biases."""
        width, blocks, inputs = self.cells**-0.5, [Block((SYMBOLS, self.embedding), 0.1)], self.embedding
        for _ in range(self.depth):
            shapes = ((inputs,), (self.cells,), (), ())
            blocks += [Block((GATES * self.cells, *shape), width) for shape in shapes]
            inputs = self.cells
        return (*blocks, Block((SYMBOLS, self.cells), width), Block((SYMBOLS,), width))

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
        """Embedding; products and gates of each layer; output."""
        t, c, inputs = self.context, self.cells, self.embedding
        layers = [Layer("embedding", "embedding", SYMBOLS * inputs, float(t * inputs), 2.0 * t * inputs)]
        for number in range(1, self.depth + 1):
            weights = GATES * c * (inputs + c)
            moved = t * (inputs + c + GATES * c)
            layers += [
                Layer(f"lstm{number}", "matmul", weights + 2 * GATES * c, 2.0 * t * weights, float(moved)),
                Layer(f"gates{number}", "elementwise", 0, 12.0 * t * c, 7.0 * t * c),
            ]
            inputs = c
        output = Layer("output", "matmul", (c + 1) * SYMBOLS, 2.0 * t * c * SYMBOLS, float(t * (c + SYMBOLS)))
        return (*layers, output, Layer("softmax", "softmax", 0, 5.0 * t * SYMBOLS, 2.0 * t * SYMBOLS))

    def initial(self, draws: Draws) -> FloatArray:
        """Uniform within 1 / sqrt(cells) as torch's LSTM, embeddings within 0.1."""
        return uniform_start(self.blocks, draws)

    def task(self, dtype: str, n_workers: int) -> Task:
        """One gradient after the other, by autograd."""
        from simulator.maths.char_lstm import Recurrent
        from simulator.maths.looped import Looped

        train, test = windows(self.context)
        data = Classified(train[:, :-1], train[:, 1:], test[:, :-1], test[:, 1:])
        recurrent = Recurrent(self.cells, self.depth)
        return Looped([block.shape for block in self.blocks], recurrent.logits, data, dtype, EVALUATED)
