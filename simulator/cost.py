"""How long a gradient and an optimiser's step take, and when each layer's gradient exists.

A model's operations are in `operations.py`, devices in `devices.py`; `workload.py` brings them together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.devices import ConstantDevice, DeviceProfile
from simulator.fabric import FloatArray
from simulator.operations import BYTES, Dtype


@dataclass(frozen=True, eq=False)
class StepTime:
    """The times of one gradient, seconds from its start, undisturbed.

    Attributes:
        forward, backward: durations; `total` is both.
        ready: when each layer's gradient exists, rising, the last at `total`; shape (layers,).
        nbytes: size of each layer's gradient on the wire, in that order; shape (layers,).
        overlap_slowdown: how many times longer computing takes beside communication.
    """

    forward: float
    backward: float
    total: float
    ready: FloatArray
    nbytes: FloatArray
    overlap_slowdown: float = 1.0
    _buckets: dict[tuple[float | None, bool], tuple[FloatArray, FloatArray]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(
        cls,
        forward: float,
        total: float,
        ready: FloatArray,
        nbytes: FloatArray,
        overlap_slowdown: float = 1.0,
    ) -> StepTime:
        """From a total; the last gradient is there at the end, to the bit."""
        ready = np.minimum(ready, total)
        if len(ready):
            ready[-1] = total
        return cls(forward, total - forward, total, ready, nbytes, overlap_slowdown)

    def buckets(
        self, bucket_bytes: float | None = None, beside: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Gradients gathered for communication, whole layers in the order in which they come.

        A bucket is closed as soon as it holds `bucket_bytes` or more, as in torch's DistributedDataParallel
        (Li et al., "PyTorch Distributed", VLDB 2020, 3.2.3). None: one bucket.

        Args:
            bucket_bytes: size at which a bucket is closed.
            beside: buckets travel beside the backward pass, so what follows the first takes
                `overlap_slowdown` times longer (as if communication filled all the rest of the pass).

        Returns:
            When each bucket is complete, and its bytes; shapes (buckets,). Asked for once a step: kept.
        """
        key = (bucket_bytes, beside)
        if key not in self._buckets:
            ready, nbytes = self._filled(bucket_bytes)
            if beside and self.overlap_slowdown != 1.0:
                ready = ready[0] + (ready - ready[0]) * self.overlap_slowdown
            self._buckets[key] = ready, nbytes
        return self._buckets[key]

    def _filled(self, bucket_bytes: float | None) -> tuple[FloatArray, FloatArray]:
        ends, held = [], 0.0
        for layer, size in enumerate(self.nbytes.tolist()):
            held += size
            if bucket_bytes is not None and held >= bucket_bytes:
                ends.append(layer)
                held = 0.0
        if not ends or ends[-1] != len(self.nbytes) - 1:
            ends.append(len(self.nbytes) - 1)
        begins = [0, *(end + 1 for end in ends[:-1])]
        return self.ready[ends], np.add.reduceat(self.nbytes, begins)


def optimizer_seconds(
    profile: DeviceProfile | ConstantDevice, parameters: int, passes: float, dtype: Dtype = "fp32"
) -> float:
    """Duration of one optimiser step: it is bound by memory.

    Args:
        profile: of the device.
        parameters: of the model.
        passes: vectors of that length read or written.
        dtype: of the optimiser's numbers.
    """
    return profile.seconds("optimiser", 0.0, float(parameters) * passes * BYTES[dtype], dtype)
