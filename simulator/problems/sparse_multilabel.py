"""Several labels for each sparse sample, as in text: a network behind a sum of the features' vectors."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Self, final

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from simulator.fabric import FloatArray
from simulator.problems.base import Block, Layer, SyntheticProblem, uniform_start
from simulator.problems.batches import IntArray
from simulator.problems.digits import Classified
from simulator.streams import Draws

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["SparseMultilabel"]

TOPIC_SHARE = 0.8  # of a sample's features that come from its topics


@final
class SparseMultilabel(SyntheticProblem):
    """Generated documents: each has some of `classes` labels, and features that its labels make likely.

    Features and labels are popular by Zipf's law. The loss is the mean logistic loss over all labels, the
    accuracy is precision at 1: how often the label with the best score is one of the sample's (as Liu et al.,
    "Deep learning for extreme multi-label text classification", SIGIR 2017, measure).
    """

    kind: Literal["sparse_multilabel"] = "sparse_multilabel"
    n_samples: PositiveInt = 2000
    n_test: PositiveInt = Field(500, description="samples to evaluate with, beside the training samples")
    features: PositiveInt = 2000
    classes: PositiveInt = Field(50, ge=2, description="labels there are")
    labels_per_sample: PositiveInt = 3
    nonzeros: PositiveInt = Field(30, description="features of a sample at most (a feature counts once)")
    hidden: tuple[PositiveInt, ...] = Field((32,), min_length=1, description="widths of the hidden layers")

    @model_validator(mode="after")
    def _labels_fit(self) -> Self:
        if self.labels_per_sample > self.classes:
            raise ValueError(
                f"found labels_per_sample: {self.labels_per_sample}, expected at most classes: {self.classes}"
            )
        return self

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss and precision at 1."""
        return ("loss", "accuracy")

    @property
    def samples(self) -> int:
        """Training samples."""
        return self.n_samples

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The features' vectors and a bias; weights (outputs, inputs) and biases of the dense layers."""
        first = self.hidden[0]
        blocks = [Block((self.features, first), self.nonzeros**-0.5), Block((first,), 0.0)]
        for inputs, outputs in pairwise((*self.hidden, self.classes)):
            blocks += [Block((outputs, inputs), inputs**-0.5), Block((outputs,), inputs**-0.5)]
        return tuple(blocks)

    @property
    def parameters(self) -> int:
        """All blocks' entries."""
        return sum(block.size for block in self.blocks)

    def layers(self) -> tuple[Layer, ...]:
        """Sum of vectors, dense layers with ReLU, losses of all labels."""
        first, k = self.hidden[0], self.nonzeros
        layers = [
            Layer("features", "embedding", (self.features + 1) * first, float(k * first), (k + 1.0) * first)
        ]
        for number, (inputs, outputs) in enumerate(pairwise((*self.hidden, self.classes)), start=1):
            layers += [
                Layer(f"relu{number}", "elementwise", 0, inputs, 2 * inputs),
                Layer(
                    f"dense{number}",
                    "matmul",
                    (inputs + 1) * outputs,
                    2.0 * inputs * outputs,
                    inputs + outputs,
                ),
            ]
        return (*layers, Layer("logistic", "elementwise", 0, 4.0 * self.classes, 2.0 * self.classes))

    def labels(self) -> np.ndarray:
        """The rarest label of each sample, by which splits may go."""
        of_sample = self.data().train_labels
        return np.asarray(self.classes - 1 - of_sample[:, ::-1].argmax(1))

    def data(self) -> Classified:
        """Features (samples, nonzeros), -1 where there is none, and labels (samples, classes), 0 or 1."""
        return _documents(self)

    def initial(self, draws: Draws) -> FloatArray:
        """Uniform within 1 / sqrt(inputs)."""
        return uniform_start(self.blocks, draws)

    def task(self, dtype: str, n_workers: int) -> Task:
        """One gradient after the other, by autograd."""
        from simulator.maths.looped import Looped
        from simulator.maths.sparse_net import SOME_LABELS, logits

        shapes = [block.shape for block in self.blocks]
        return Looped(shapes, logits, self.data(), dtype, judge=SOME_LABELS)


def _zipf(u: FloatArray, n: int) -> IntArray:
    """Numbers 0 .. n - 1, popular as 1 / (number + 1)."""
    popular = np.cumsum(1.0 / np.arange(1, n + 1))
    return np.asarray(np.minimum(np.searchsorted(popular, u * popular[-1]), n - 1), dtype=np.int64)


@lru_cache(maxsize=4)
def _documents(spec: SparseMultilabel) -> Classified:
    draws, n = Draws(spec.data_seed), spec.n_samples + spec.n_test
    u = {
        what: draws.block(f"labels/{what}", 0, n * each).reshape(n, each)
        for what, each in (
            ("classes", spec.classes),
            ("topic", spec.nonzeros),
            ("feature", spec.nonzeros),
            ("which", spec.nonzeros),
        )
    }
    # The k least of exponential times with rates 1 / rank are k different labels, popular by Zipf's law.
    times = -np.log(u["classes"]) * np.arange(1, spec.classes + 1)
    chosen = np.argsort(times, axis=1, kind="stable")[:, : spec.labels_per_sample]
    labels = np.zeros((n, spec.classes))
    np.put_along_axis(labels, chosen, 1.0, axis=1)
    which = (u["which"] * spec.labels_per_sample).astype(np.int64)
    topic = np.take_along_axis(chosen, which, axis=1)
    place = _zipf(u["feature"], spec.features)
    # A topic has the order of popularity of all features, shifted to a place of its own.
    own = (place + (topic + 1) * spec.features // (spec.classes + 1)) % spec.features
    columns = np.where(u["topic"] < TOPIC_SHARE, own, place)
    columns.sort(axis=1)
    columns[:, 1:][columns[:, 1:] == columns[:, :-1]] = -1
    cut = spec.n_samples
    return Classified(columns[:cut], labels[:cut], columns[cut:], labels[cut:])
