"""What can be learned: one file a problem. No torch is imported until a problem's task is made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simulator.problems.base import Layer, Problem
from simulator.problems.char_lstm import CharLstm
from simulator.problems.char_transformer import CharTransformer
from simulator.problems.digits_cnn import DigitsCnn
from simulator.problems.digits_mlp import DigitsMlp
from simulator.problems.images import Cifar10, Mnist
from simulator.problems.least_squares import LeastSquares
from simulator.problems.logistic_regression import LogisticRegression
from simulator.problems.mnist1d_cnn import Mnist1dCnn
from simulator.problems.quadratic import Quadratic
from simulator.problems.sparse_multilabel import SparseMultilabel
from simulator.problems.svmlight import Svmlight

__all__ = [
    "CharLstm",
    "CharTransformer",
    "Cifar10",
    "DigitsCnn",
    "DigitsMlp",
    "Layer",
    "LeastSquares",
    "LogisticRegression",
    "Mnist",
    "Mnist1dCnn",
    "Problem",
    "ProblemSpec",
    "Quadratic",
    "SparseMultilabel",
    "Svmlight",
]

ProblemSpec = Annotated[
    Quadratic
    | LeastSquares
    | LogisticRegression
    | DigitsMlp
    | DigitsCnn
    | CharTransformer
    | CharLstm
    | Mnist1dCnn
    | SparseMultilabel
    | Mnist
    | Cifar10
    | Svmlight,
    Field(discriminator="kind"),
]
