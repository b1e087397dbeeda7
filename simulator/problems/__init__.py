"""What can be learned: one file a problem. No torch is imported until a problem's task is made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simulator.problems.base import Layer, Problem
from simulator.problems.digits_mlp import DigitsMlp
from simulator.problems.quadratic import Quadratic

__all__ = ["DigitsMlp", "Layer", "Problem", "ProblemSpec", "Quadratic"]

ProblemSpec = Annotated[Quadratic | DigitsMlp, Field(discriminator="kind")]
