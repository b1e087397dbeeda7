"""What each gradient costs: a model's operations, a batch and a type of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pydantic import Field, PositiveInt

from simulator.cost import StepTime
from simulator.devices import ConstantDevice, DeviceProfile
from simulator.fabric import FloatArray, IntArray
from simulator.input_pipeline import InputSpec
from simulator.operations import BYTES, Dtype, LayerCost, Operations
from simulator.spec import Spec


@dataclass(frozen=True, eq=False)
class Workload:
    """A model to be costed.

    Attributes:
        name: of the model.
        operations: of one gradient.
        batch: samples a gradient costs.
        dtype: type of the numbers computed in.
        gradient_dtype: type of the numbers on the wire.
    """

    name: str
    operations: Operations
    batch: int
    dtype: Dtype = "fp32"
    gradient_dtype: Dtype = "fp32"

    @classmethod
    def of_layers(cls, name: str, layers: Sequence[LayerCost], batch: int) -> Workload:
        """A problem's own model, in fp32.

        Args:
            name: of the model.
            layers: in forward order.
            batch: samples a gradient costs.
        """
        return cls(name, Operations.of_layers(layers), batch)

    @property
    def parameters(self) -> int:
        """Parameters of the model."""
        return self.operations.total_parameters

    @property
    def value_bytes(self) -> float:
        """Size of a gradient or a model on the wire."""
        return float(self.parameters * BYTES[self.gradient_dtype])

    @property
    def flop_per_sample(self) -> float:
        """FLOP of one sample, forward and backward."""
        return self.operations.flop_per_sample

    def memory_bytes(self, optimizer_values: int = 0) -> float:
        """Estimate of device memory: weights, gradients, the optimiser's state, what the backward pass needs.

        Args:
            optimizer_values: numbers the optimiser keeps for each parameter.
        """
        weights = self.parameters * (BYTES[self.dtype] + BYTES[self.gradient_dtype] + 4 * optimizer_values)
        return float(weights + self.batch * self.operations.kept.sum() * BYTES[self.dtype])

    def step(self, profile: DeviceProfile | ConstantDevice) -> StepTime:
        """The times of one gradient on a device."""
        o = self.operations
        if isinstance(profile, ConstantDevice):
            seconds, total = self._shares * profile.step, profile.step
        else:
            seconds, total = self._seconds(profile), None
        forward = float(seconds[~o.backward].sum())
        done = forward + np.cumsum(np.where(o.backward, seconds, 0.0))
        ready = np.zeros(len(o.layers))
        np.maximum.at(ready, o.layer[o.backward], done[o.backward])
        order = self._gradient_order
        nbytes = o.parameters[order].astype(np.float64) * BYTES[self.gradient_dtype]
        slowdown = getattr(profile, "overlap_slowdown", None)
        return StepTime.of(
            forward,
            float(done[-1]) if total is None else total,
            ready[order],
            nbytes,
            slowdown.compute_under_communication if slowdown else 1.0,
        )

    @cached_property
    def _gradient_order(self) -> IntArray:
        """Layers with parameters in the order in which their gradients are complete."""
        o = self.operations
        last = np.full(len(o.layers), -1)
        np.maximum.at(last, o.layer[o.backward], np.flatnonzero(o.backward))
        order = np.argsort(last, kind="stable")
        return order[o.parameters[order] > 0]

    @cached_property
    def _shares(self) -> FloatArray:
        """How an ideal device spreads its time over the operations: by FLOP, shape (operations,)."""
        o = self.operations
        return o.flop / o.flop.sum() if o.flop.sum() > 0 else np.full(len(o), 1 / len(o))

    def _seconds(self, profile: DeviceProfile) -> FloatArray:
        """Of each operation, shape (operations,)."""
        o = self.operations
        nbytes = (o.values * self.batch + o.fixed) * BYTES[self.dtype]
        rows = zip(o.kind, (o.flop * self.batch).tolist(), nbytes.tolist(), strict=True)
        return np.array([profile.seconds(kind, flop, size, self.dtype) for kind, flop, size in rows])


class WorkloadSpec(Spec):
    """Scenario key `workload`: what each step costs, whatever is really computed."""

    model: str = Field(description="a shipped list of operations: `paceline list models`")
    batch: PositiveInt = Field(lt=2**31, description="samples a gradient costs")
    dtype: Dtype = "fp32"
    gradient_dtype: Dtype | None = Field(None, description="on the wire; by default as `dtype`")
    input: InputSpec | None = Field(None, description="loading samples; by default they are there")

    def build(self, load: Callable[[str], Operations]) -> Workload:
        """The workload; `load` finds the operations of a model by name."""
        return Workload(
            self.model, load(self.model), self.batch, self.dtype, self.gradient_dtype or self.dtype
        )
