"""Shipped lists of operations, one CSV file a model, and where they come from; read without torch.

Each is the trace (`trace.py`) of a torch module in this package, built here so that no other package need be
installed: `plain.py`, `residual.py`, `transformers.py`, `recurrent.py`, `detection.py`, `proxies.py` (of the
small problems). `python -m calibration.operations [NAME...]` traces and writes them anew. Columns: layer,
pass (forward or backward), kind, then for each sample the FLOP, the numbers read and written (`values`) and
those kept for the backward pass (`kept`); `fixed` are numbers read and written whatever the batch;
`parameters` of the layer stand in its first row.
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
        loss: behind it, of `losses.py`.
    """

    sample: tuple[int, ...]
    summary: str
    source: str
    module: Literal["plain", "residual", "transformers", "recurrent", "detection", "proxies"]
    tokens: bool = False
    loss: Literal["cross_entropy", "multi_label", "detection"] = "cross_entropy"


_IMAGE = (3, 224, 224)
_HE = "He et al., CVPR 2016"
_VGG = "Simonyan, Zisserman, ICLR 2015"
_GPT2 = "Radford et al. 2019"
_NEO = "Black et al. 2021"
_BERT = "Devlin et al., NAACL 2019"
_OURS = "simulator/problems"
_FAMILIES: dict[str, dict[str, Model]] = {
    "residual": {
        "resnet18": Model(_IMAGE, "ResNet-18 on ImageNet, 11.7 M parameters", _HE, "residual"),
        "resnet20": Model((3, 32, 32), "ResNet-20 on CIFAR-10, 0.27 M parameters", _HE, "residual"),
        "resnet50": Model(_IMAGE, "ResNet-50 v1.5 on ImageNet, 25.6 M parameters", _HE, "residual"),
        "resnet101": Model(_IMAGE, "ResNet-101 v1.5 on ImageNet, 44.5 M parameters", _HE, "residual"),
        "resnext50": Model(
            _IMAGE, "ResNeXt-50 32x4d on ImageNet, 25.0 M parameters", "Xie et al., CVPR 2017", "residual"
        ),
        "mobilenet_v2": Model(
            _IMAGE, "MobileNetV2 on ImageNet, 3.5 M parameters", "Sandler et al., CVPR 2018", "residual"
        ),
    },
    "plain": {
        "lenet5": Model((1, 28, 28), "LeNet-5 on MNIST, 61,706 parameters", "LeCun et al. 1998", "plain"),
        "alexnet": Model(_IMAGE, "AlexNet on ImageNet, 61.1 M parameters", "Krizhevsky 2014", "plain"),
        "vgg16": Model(_IMAGE, "VGG-16 on ImageNet, 138 M parameters", _VGG, "plain"),
        "vgg19": Model(_IMAGE, "VGG-19 on ImageNet, 144 M parameters", _VGG, "plain"),
        "googlenet": Model(
            _IMAGE, "GoogLeNet on ImageNet, 6.6 M parameters", "Szegedy et al., CVPR 2015", "plain"
        ),
        "sparse_mlp": Model(
            (76,),
            "dense network on 47,236 sparse features (as in rcv1, 76 of them in a sample), 6.1 M parameters",
            "Ma, Rusu, Torres, IPDPS 2019",
            "plain",
            tokens=True,
            loss="multi_label",
        ),
    },
    "transformers": {
        "gpt2": Model((1024,), "GPT-2 on 1,024 symbols, 124 M parameters", _GPT2, "transformers", True),
        "gpt2_medium": Model(
            (1024,), "GPT-2 medium on 1,024 symbols, 355 M parameters", _GPT2, "transformers", True
        ),
        "gpt2_large": Model(
            (1024,), "GPT-2 large on 1,024 symbols, 774 M parameters", _GPT2, "transformers", True
        ),
        "gpt2_xl": Model(
            (1024,), "GPT-2 XL on 1,024 symbols, 1.56 G parameters", _GPT2, "transformers", True
        ),
        "gpt_neo_8m": Model(
            (512,),
            "GPT-Neo of TinyStories-8M on 512 symbols, 19.7 M parameters",
            "Eldan, Li 2023",
            "transformers",
            True,
        ),
        "gpt_neo_125m": Model(
            (512,), "GPT-Neo 125M on 512 symbols, 125 M parameters", _NEO, "transformers", True
        ),
        "bert_base": Model(
            (128,), "BERT-base in pre-training on 128 symbols, 110 M parameters", _BERT, "transformers", True
        ),
        "bert_large": Model(
            (128,), "BERT-large in pre-training on 128 symbols, 336 M parameters", _BERT, "transformers", True
        ),
        "vit_b_16": Model(
            _IMAGE, "ViT-B/16 on ImageNet, 86.6 M parameters", "Dosovitskiy et al., ICLR 2021", "transformers"
        ),
    },
    "others": {
        "lstm_acoustic": Model(
            (21, 260),
            "six bidirectional LSTM layers on 21 frames of speech, 43.2 M parameters",
            "Zhang et al., Interspeech 2019",
            "recurrent",
        ),
        "retinanet_resnext50": Model(
            (3, 800, 800),
            "RetinaNet on ResNeXt-50, 800 x 800 pixels of Open Images, 37.1 M parameters",
            "Lin et al., ICCV 2017",
            "detection",
            loss="detection",
        ),
    },
    "proxies": {
        "digits_mlp": Model((64,), "the problem's dense network, 9,610 parameters", _OURS, "proxies"),
        "digits_cnn": Model(
            (1, 8, 8), "the problem's convolutional network, 3,842 parameters", _OURS, "proxies"
        ),
        "char_transformer": Model((32,), "the problem's decoder, 32,448 parameters", _OURS, "proxies", True),
    },
}
MODELS: dict[str, Model] = {name: model for family in _FAMILIES.values() for name, model in family.items()}


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
