"""Linear models on a file of the user's in svmlight's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, final

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from simulator.fabric import FloatArray
from simulator.problems.base import DataProblem, Layer
from simulator.problems.linear import Metric, Rows
from simulator.problems.svmlight_rows import SparseRows, read_svmlight
from simulator.streams import Draws
from simulator.user_files import UserPath

if TYPE_CHECKING:
    from simulator.maths.task import Task

__all__ = ["Svmlight"]


@final
class Svmlight(DataProblem):
    """Logistic regression of two classes, or least squares, on sparse samples from a file.

    P(w) = mean_i phi_i(x_i w) + l2/2 |w|^2. Classes are the two labels in the file, the lower one is -1.
    """

    kind: Literal["svmlight"] = "svmlight"
    file: UserPath = Field(description="training samples, relative to the scenario's file; may be a .gz")
    test_file: UserPath | None = Field(None, description="samples to evaluate with; by default `file`")
    first_index: Literal[0, 1] = Field(1, description="number of the first feature in the file")
    features: PositiveInt | None = Field(None, description="entries of the model; null: as many as occur")
    loss: Literal["logistic", "squared"] = "logistic"
    l2: NonNegativeFloat = 1e-4
    metric: Metric = "loss"

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.metric == "duality_gap" and not self.l2:
            raise ValueError("found metric: duality_gap with l2: 0; expected l2 > 0")
        for file in filter(None, (self.file, self.test_file)):
            highest = int(read_svmlight(file, self.first_index).columns.max()) + 1
            if self.features is not None and highest > self.features:
                raise ValueError(f"found features: {self.features}, expected at least {highest} as in {file}")
        classes = self._classes
        if self.loss == "logistic" and len(classes) != 2:
            raise ValueError(f"found {len(classes)} different labels in {self.file}, expected two")
        if self.test_file and self.loss == "logistic":
            others = set(read_svmlight(self.test_file, self.first_index).targets.tolist()) - set(classes)
            if others:
                raise ValueError(
                    f"found label {min(others)} in {self.test_file}, expected those of {self.file}"
                )
        return self

    @property
    def _train(self) -> SparseRows:
        return read_svmlight(self.file, self.first_index)

    @property
    def _classes(self) -> list[float]:
        return sorted(set(self._train.targets.tolist()))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss, and of classes the accuracy."""
        return ("loss", "accuracy") if self.loss == "logistic" else ("loss",)

    @property
    def parameters(self) -> int:
        """One a feature."""
        files = filter(None, (self.file, self.test_file))
        return self.features or max(int(read_svmlight(f, self.first_index).columns.max()) + 1 for f in files)

    @property
    def samples(self) -> int:
        """Lines of the file."""
        return len(self._train.targets)

    def labels(self) -> np.ndarray:
        """The labels of the file."""
        return self._train.targets

    def layers(self) -> tuple[Layer, ...]:
        """One product with the model."""
        entries = self._train.entries / self.samples
        return (Layer("linear", "matmul", self.parameters, 2.0 * entries, entries + 1),)

    def initial(self, draws: Draws) -> FloatArray:
        """Zeros: the customary start of convex problems."""
        return np.zeros(self.parameters)

    def _rows(self, file: str) -> Rows:
        there = read_svmlight(file, self.first_index)
        targets = there.targets
        if self.loss == "logistic":
            targets = np.where(targets == self._classes[1], 1.0, -1.0)
        return Rows(there.values, targets, there.columns)

    def task(self, dtype: str, n_workers: int) -> Task:
        """Stacked products of the batches with the models."""
        from simulator.maths.linear import LinearTask, TwoFiles

        train, test = (
            LinearTask(self._rows(file), self.parameters, self.loss, self.l2, self.metric, dtype)
            for file in (self.file, self.test_file or self.file)
        )
        return TwoFiles(train, test)
