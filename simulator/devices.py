"""Device profiles: what a device can do, as data with a source and a date, and how long operations take.

seconds = launch overhead + max(FLOP / (peak x share), bytes / (bandwidth x share)): a roofline with
efficiencies by size (Williams, Waterman, Patterson, "Roofline", CACM 2009; shares by size as in Calculon's
system files).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from math import log
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, NonNegativeFloat, model_validator

from simulator.errors import InputError
from simulator.operations import KINDS, Dtype
from simulator.spec import Spec
from simulator.units import Bandwidth, Flops, PositiveBytes, PositiveSeconds, Seconds, Watts

_STANDS_FOR = {"convolution": "matmul"}  # for arithmetic; for traffic every kind falls back on elementwise


class Source(Spec):
    """Where numbers come from."""

    what: str
    date: str
    table: str | None = Field(None, description="row of a table of reference data")
    verified: Literal["yes", "partly", "no"] = "no"
    stack: str | None = Field(None, description="framework and versions measured with")
    notes: str | None = None


class Memory(Spec):
    """Device memory."""

    size: PositiveBytes
    bandwidth: Bandwidth
    source: str | None = None


class Overhead(Spec):
    """Time to launch one kernel."""

    value: Seconds
    source: str | None = None


class Power(Spec):
    """Electrical power of the device alone."""

    idle: Watts
    busy: Watts
    source: str | None = None


class Price(Spec):
    """What an hour of the device costs."""

    usd_per_hour: NonNegativeFloat
    date: str
    source: str | None = None


class Nvlink(Spec):
    """The device's links to its neighbours in a host: all together, one direction."""

    bandwidth: Bandwidth
    latency: Seconds
    source: str | None = None


class OverlapSlowdown(Spec):
    """How computation and communication hinder each other."""

    compute_under_communication: Annotated[float, Field(ge=1)]
    source: str | None = None


class Curve(Spec):
    """The share of the peak (or of the memory bandwidth) that an operation reaches, by its size.

    Between points the share is linear in the logarithm of the size; outside it is constant.
    """

    dtype: Dtype | None = Field(None, description="None: any")
    by: Literal["flop", "bytes"]
    points: tuple[tuple[float, float], ...] = Field(min_length=1, description="[size, share] by rising size")
    residual_pct: NonNegativeFloat | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _rising(self) -> Self:
        sizes = [size for size, _ in self.points]
        if min(sizes) <= 0 or any(a >= b for a, b in pairwise(sizes)):
            raise ValueError(f"found sizes {sizes}, expected them above zero and rising")
        if not all(0 < share <= 1.5 for _, share in self.points):
            raise ValueError("expected shares above 0 and not above 1.5 (of the peak or the bandwidth)")
        return self

    def share(self, size: float) -> float:
        """At a size in FLOP or bytes."""
        sizes = [log(at) for at, _ in self.points]
        return float(np.interp(log(max(size, 1e-9)), sizes, [share for _, share in self.points]))


class DeviceProfile(Spec):
    """A device by its figures."""

    kind: Literal["device"] = "device"
    name: str
    source: Source
    peak: dict[Dtype, Flops] = Field(min_length=1, description="dense FLOP/s by type")
    memory: Memory
    launch_overhead: Overhead
    power: Power | None = None
    price: Price | None = None
    nvlink: Nvlink | None = None
    efficiency: dict[str, Curve | tuple[Curve, ...]] = Field(default_factory=dict)
    overlap_slowdown: OverlapSlowdown | None = None

    @model_validator(mode="after")
    def _known_kinds(self) -> Self:
        unknown = sorted(set(self.efficiency) - set(KINDS))
        if unknown:
            raise ValueError(f"found efficiency of {unknown[0]!r}, expected one of {', '.join(KINDS)}")
        return self

    @cached_property
    def _curves(self) -> dict[str, tuple[Curve, ...]]:
        return {k: (c,) if isinstance(c, Curve) else c for k, c in self.efficiency.items()}

    def _curve(self, kind: str, by: str, dtype: Dtype) -> Curve | None:
        """The curve of a kind of operation for these numbers, or the nearest thing there is.

        First its own, then the one of the kind that stands for it; at last, for arithmetic, the kind's curve
        for other numbers. None: the full peak or bandwidth.
        """
        other = _STANDS_FOR.get(kind) if by == "flop" else "elementwise"
        own = [curve for curve in self._curves.get(kind, ()) if curve.by == by]
        for curve in (*own, *(c for c in self._curves.get(other or "", ()) if c.by == by)):
            if curve.dtype in (dtype, None):
                return curve
        return own[0] if own and by == "flop" else None

    def flops(self, dtype: Dtype) -> float:
        """Peak FLOP/s.

        Raises:
            InputError: the profile has no peak for this type of numbers.
        """
        if dtype not in self.peak:
            raise InputError(
                f"one of the types of device {self.name}: {', '.join(self.peak)}", dtype, "dtype"
            )
        return self.peak[dtype]

    def seconds(self, kind: str, flop: float, nbytes: float, dtype: Dtype = "fp32") -> float:
        """Duration of one operation.

        Args:
            kind: as in `operations.Kind`.
            flop: of the whole batch.
            nbytes: read and written, of the whole batch.
            dtype: type of the numbers.
        """
        arithmetic = traffic = 0.0
        if flop > 0:
            curve = self._curve(kind, "flop", dtype)
            arithmetic = flop / (self.flops(dtype) * (curve.share(flop) if curve else 1.0))
        if nbytes > 0:
            curve = self._curve(kind, "bytes", dtype)
            traffic = nbytes / (self.memory.bandwidth * (curve.share(nbytes) if curve else 1.0))
        return self.launch_overhead.value + max(arithmetic, traffic)


class ConstantDevice(Spec):
    """An ideal device: every gradient takes `step`, whatever the model; everything else takes no time."""

    kind: Literal["constant"] = "constant"
    step: PositiveSeconds

    @property
    def name(self) -> str:
        """How reports call it."""
        return "constant"

    def seconds(self, kind: str, flop: float, nbytes: float, dtype: Dtype = "fp32") -> float:
        """Zero."""
        return 0.0


Profile = Annotated[DeviceProfile | ConstantDevice, Field(discriminator="kind")]
"""What a profile file holds under `profile:`."""
