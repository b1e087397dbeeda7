"""Three kinds of iris by four lengths: a problem of one's own, with its own data."""

from typing import Literal

import numpy as np
from pydantic import PositiveInt
from torch import nn

from simulator.problems.own_module import Classified, ModuleProblem
from simulator.user_files import UserPath


class Flowers(ModuleProblem):
    """A dense network; the keys of `problem` in the scenario are these fields."""

    file: UserPath
    hidden: PositiveInt = 16
    activation: Literal["relu", "tanh"] = "tanh"

    def module(self) -> nn.Module:
        between = nn.Tanh() if self.activation == "tanh" else nn.ReLU()
        return nn.Sequential(nn.Linear(4, self.hidden), between, nn.Linear(self.hidden, 3))

    def data(self) -> Classified:
        table = np.loadtxt(self.file, delimiter=",", skiprows=1)
        inputs, labels = table[:, :4] - table[:, :4].mean(0), table[:, 4].astype(np.int64)
        test = np.arange(len(table)) % 5 == 0  # every fifth
        return Classified(inputs[~test], labels[~test], inputs[test], labels[test])
