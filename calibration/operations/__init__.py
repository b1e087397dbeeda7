"""Shipped lists of operations, one CSV file a model, and where they come from; read without torch.

Each is the trace (`trace.py`) of a module in `models.py` or `proxies.py`; `python -m
calibration.operations` traces and writes them anew. Columns: layer, pass (forward or backward), kind, then
for each sample the FLOP, the numbers read and written (`values`) and those kept for the backward pass
(`kept`); `fixed` are numbers read and written whatever the batch; `parameters` of the layer stand in its
first row.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from simulator.errors import InputError
from simulator.operations import Operation, Operations
from simulator.validation import did_you_mean

COLUMNS = ("layer", "pass", "kind", "flop", "values", "fixed", "kept", "parameters")
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Model:
    """A shipped model.

    Attributes:
        sample: shape of one sample.
        summary: what it is.
        source: who described it.
        module: the module of this package that builds it.
        tokens: whether a sample is made of symbols (integers).
    """

    sample: tuple[int, ...]
    summary: str
    source: str
    module: Literal["models", "proxies"] = "models"
    tokens: bool = False


_HE = "He et al., CVPR 2016"
_OURS = "simulator/problems"
MODELS: dict[str, Model] = {
    "resnet18": Model((3, 224, 224), "ResNet-18 on ImageNet, 11.7 M parameters", _HE),
    "resnet50": Model((3, 224, 224), "ResNet-50 v1.5 on ImageNet, 25.6 M parameters", _HE),
    "vgg16": Model((3, 224, 224), "VGG-16 on ImageNet, 138 M parameters", "Simonyan, Zisserman, ICLR 2015"),
    "digits_mlp": Model((64,), "the problem's dense network, 9,610 parameters", _OURS, "proxies"),
    "digits_cnn": Model((1, 8, 8), "the problem's convolutional network, 3,842 parameters", _OURS, "proxies"),
    "char_transformer": Model(
        (32,), "the problem's decoder, 32,448 parameters", _OURS, "proxies", tokens=True
    ),
}


def names() -> tuple[str, ...]:
    """Of the shipped models."""
    return tuple(MODELS)


@lru_cache(maxsize=64)
def load(name: str) -> Operations:
    """The operations of a shipped model.

    Raises:
        InputError: no such model.
    """
    if name not in MODELS:
        hint = did_you_mean(name, MODELS)
        raise InputError(f"a model: {', '.join(MODELS)}", repr(name), "workload.model", hint)
    return from_csv((_FOLDER / f"{name}.csv").read_text(encoding="utf-8"))


def to_csv(operations: Operations) -> str:
    """A list of operations as text; `from_csv` reads it back."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    told: set[int] = set()
    for row in operations.rows():
        parameters = 0 if row.layer in told else int(operations.parameters[row.layer])
        told.add(row.layer)
        amounts = [_short(amount) for amount in (row.flop, row.values, row.fixed, row.kept)]
        walk = "backward" if row.backward else "forward"
        table.writerow([operations.layers[row.layer], walk, row.kind, *amounts, parameters])
    return text.getvalue()


def from_csv(text: str) -> Operations:
    """A list of operations from its text."""
    number: dict[str, int] = {}
    parameters: list[int] = []
    rows = []
    for line in csv.DictReader(io.StringIO(text)):
        layer = number.setdefault(line["layer"], len(number))
        if layer == len(parameters):
            parameters.append(int(line["parameters"]))
        amounts = (float(line[column]) for column in ("flop", "values", "fixed", "kept"))
        rows.append(Operation(layer, line["pass"] == "backward", line["kind"], *amounts))
    return Operations.of(list(number), parameters, rows)


def _short(amount: float) -> str:
    return str(int(amount)) if amount.is_integer() else repr(amount)
