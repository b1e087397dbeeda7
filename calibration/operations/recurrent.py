"""The acoustic model of the speech papers: six bidirectional LSTM layers on 21 frames.

Hochreiter, Schmidhuber, "Long short-term memory", 1997. Sizes: Zhang et al., "A highly efficient distributed
deep learning system for automatic speech recognition", Interspeech 2019 (260 inputs a frame, six layers of
1,024 cells, half of them in each direction, 256 in the bottleneck, 32,000 states; 165 MB) [from memory].

As GPU libraries do it: the inputs of all frames in one product, both directions together, and the gates of a
frame in one kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

INPUTS, CELLS, LAYERS, BOTTLENECK, STATES = 260, 512, 6, 256, 32_000


@torch.library.custom_op("paceline::lstm_cell", mutates_args=())
def lstm_cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One frame of LSTM cells: (..., 4 H) gates before activation and (..., H) memory.

    Returns:
        What the cells put out (..., H), their new memory (..., H), the gates after activation (..., 4 H).
    """
    let_in, forget, new, put_out = gates.chunk(4, -1)
    let_in, forget, put_out = let_in.sigmoid(), forget.sigmoid(), put_out.sigmoid()
    new = new.tanh()
    c = forget * c + let_in * new
    return put_out * c.tanh(), c, torch.cat([let_in, forget, new, put_out], -1)


@torch.library.custom_op("paceline::lstm_cell_backward", mutates_args=())
def lstm_cell_backward(
    by_h: Tensor, by_c: Tensor, active: Tensor, c: Tensor, c_new: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients by the gates before activation and by the old memory."""
    let_in, forget, new, put_out = active.chunk(4, -1)
    bent = c_new.tanh()
    by_c = by_c + by_h * put_out * (1 - bent * bent)
    by_gates = torch.cat(
        [
            by_c * new * let_in * (1 - let_in),
            by_c * c * forget * (1 - forget),
            by_c * let_in * (1 - new * new),
            by_h * bent * put_out * (1 - put_out),
        ],
        -1,
    )
    return by_gates, by_c * forget


@lstm_cell.register_fake
def _(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(c), torch.empty_like(c), torch.empty_like(gates)


@lstm_cell_backward.register_fake
def _(by_h: Tensor, by_c: Tensor, active: Tensor, c: Tensor, c_new: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(active), torch.empty_like(c)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output[2], inputs[1], output[1])


def _slope(ctx: Any, by_h: Tensor, by_c: Tensor, by_active: Tensor) -> tuple[Tensor, Tensor]:
    by_gates, by_old_c = lstm_cell_backward(by_h, by_c, *ctx.saved_tensors)
    return by_gates, by_old_c


lstm_cell.register_autograd(_slope, setup_context=_keep)


class Bidirectional(nn.Module):
    """One layer, forwards and backwards in time; axis D is the direction."""

    def __init__(self, inputs: int, cells: int) -> None:
        super().__init__()
        bound = cells**-0.5
        shapes = ((2, inputs, 4 * cells), (2, cells, 4 * cells), (2, 1, 4 * cells), (2, 1, 4 * cells))
        self.by_input, self.by_hidden, self.bias_input, self.bias_hidden = (
            nn.Parameter(torch.empty(shape).uniform_(-bound, bound)) for shape in shapes
        )
        self.cells = cells

    def forward(self, x_TBI: Tensor) -> Tensor:
        """(T, B, I) to (T, B, 2 cells)."""
        frames, batch, _ = x_TBI.shape
        both_DTBI = torch.stack([x_TBI, x_TBI.flip(0)])
        bias = self.bias_input + self.bias_hidden
        gates_DTBG = torch.baddbmm(bias, both_DTBI.flatten(1, 2), self.by_input).view(2, frames, batch, -1)
        h = c = x_TBI.new_zeros(2, batch, self.cells)
        out = []
        for gates in gates_DTBG.unbind(1):
            h, c, _ = lstm_cell(torch.baddbmm(gates, h, self.by_hidden), c)
            out.append(h)
        y_DTBC = torch.stack(out, 1)
        return torch.cat([y_DTBC[0], y_DTBC[1].flip(0)], -1)


class AcousticModel(nn.Module):
    """Layers of cells, a bottleneck, scores of the states at each frame."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (INPUTS, *[2 * CELLS] * (LAYERS - 1))
        self.layers = nn.Sequential(*(Bidirectional(inputs, CELLS) for inputs in sizes))
        self.bottleneck, self.output = nn.Linear(2 * CELLS, BOTTLENECK), nn.Linear(BOTTLENECK, STATES)

    def forward(self, x_BTI: Tensor) -> Tensor:
        """(B, T, INPUTS) to (T, B, STATES)."""
        scores: Tensor = self.output(self.bottleneck(self.layers(x_BTI.transpose(0, 1))))
        return scores


def lstm_acoustic() -> nn.Module:
    """The acoustic model: 43,154,944 parameters."""
    return AcousticModel()
