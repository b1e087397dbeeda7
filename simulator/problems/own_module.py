"""A problem from a torch module and data of your own: derive from `ModuleProblem`, use `--allow-code`.

See `notebooks/own_code/` for a worked example.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from pydantic import model_validator

from simulator.fabric import FloatArray
from simulator.problems.base import DataProblem, Layer
from simulator.problems.digits import Classified
from simulator.streams import Draws

if TYPE_CHECKING:
    from torch import Tensor, nn

    from simulator.maths.own_module import Measured
    from simulator.maths.task import Task

__all__ = ["Classified", "ModuleProblem"]


class ModuleProblem(DataProblem):
    """What learns is a torch module; sizes and costs are measured on it, without computing anything.

    Its fields are the keys of `problem` in a scenario; a path is a `simulator.user_files.UserPath`. The
    module may neither drop out at random nor normalise over batches: a gradient must be a function of the
    model and the samples.

    Attributes:
        classifies: whether there is an accuracy: labels are numbers of classes, outputs their scores.
    """

    classifies: ClassVar[bool] = True

    @model_validator(mode="after")
    def _usable(self) -> Self:
        try:
            self._measured()
        except ValueError:
            raise
        except Exception as error:  # whatever the user's code raises is the user's to mend
            said = f"{type(error).__name__}: {error}"
            raise ValueError(f"{self.kind} cannot be measured: {said}") from error
        return self

    @abstractmethod
    def module(self) -> nn.Module:
        """A new module; how it starts follows the run's seed."""

    @abstractmethod
    def data(self) -> Classified:
        """Inputs (samples, ...) and labels (samples, ...) to train on and to test with."""

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Mean loss of a batch; cross-entropy unless redefined."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs.flatten(0, -2), labels.flatten())

    def _data(self) -> Classified:
        return _loaded(self)

    def _measured(self) -> Measured:
        return _measured(self)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Loss, and of classes the accuracy."""
        return ("loss", "accuracy") if self.classifies else ("loss",)

    @property
    def samples(self) -> int:
        """Training samples."""
        return len(self._data().train)

    def labels(self) -> np.ndarray:
        """The training labels."""
        return self._data().train_labels

    @property
    def parameters(self) -> int:
        """The module's."""
        return sum(layer.parameters for layer in self.layers())

    def layers(self) -> tuple[Layer, ...]:
        """One for each module that has parameters of its own."""
        return self._measured().layers

    def initial(self, draws: Draws) -> FloatArray:
        """As the module's constructor draws it."""
        from simulator.maths.own_module import started

        return started(self.module, int(draws.block("initial", 0, 1)[0] * 2**53))

    def task(self, dtype: str, n_workers: int) -> Task:
        """One gradient after the other, by autograd."""
        from simulator.maths.own_module import task

        return task(self.module, self._data(), self.loss, self.classifies, dtype)


@lru_cache(maxsize=4)
def _loaded(problem: ModuleProblem) -> Classified:
    data = problem.data()
    for inputs, labels in ((data.train, data.train_labels), (data.test, data.test_labels)):
        if len(inputs) != len(labels) or not len(inputs):
            raise ValueError(f"{problem.name} gives {len(inputs)} samples and {len(labels)} labels")
    return data


@lru_cache(maxsize=4)
def _measured(problem: ModuleProblem) -> Measured:
    from simulator.maths.own_module import measured

    return measured(problem.module, problem._data().train[:1])
