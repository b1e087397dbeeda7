"""Costs: the roofline by hand, batches, buckets, ideal devices, optimisers."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from calibration import operations as models
from calibration import profiles
from simulator.cost import StepTime, optimizer_seconds
from simulator.devices import ConstantDevice, DeviceProfile, Profile
from simulator.errors import InputError
from simulator.operations import Operation, Operations
from simulator.problems.digits_mlp import DigitsMlp
from simulator.workload import Workload, WorkloadSpec

PLAIN: dict[str, Any] = {
    "kind": "device",
    "name": "plain",
    "source": {"what": "made up", "date": "2026-12-01"},
    "peak": {"fp32": "10 TFLOP/s", "fp16": "20 TFLOP/s"},
    "memory": {"size": "16 GB", "bandwidth": "500 GB/s"},
    "launch_overhead": {"value": "5 us"},
    "efficiency": {
        "matmul": {"dtype": "fp32", "by": "flop", "points": ((1e6, 0.1), (1e9, 0.7))},
        "elementwise": {"by": "bytes", "points": ((1e5, 0.2), (1e7, 0.8))},
    },
}


def device(**changes: Any) -> DeviceProfile:
    return TypeAdapter(DeviceProfile).validate_python({**PLAIN, **changes})


def workload(batch: int = 32, **changes: Any) -> Workload:
    return WorkloadSpec(model="resnet18", batch=batch, **changes).build(models.load)


def test_roofline_by_hand() -> None:
    plain = device()
    overhead = 5e-6
    assert plain.seconds("matmul", 1e9, 0.0) == pytest.approx(overhead + 1e9 / (10e12 * 0.7), rel=1e-12)
    assert plain.seconds("elementwise", 0.0, 1e7) == pytest.approx(overhead + 1e7 / (500e9 * 0.8), rel=1e-12)
    middle = math.sqrt(1e6 * 1e9)  # half way on the logarithmic axis: half way between the shares
    assert plain.seconds("matmul", middle, 0.0) == pytest.approx(overhead + middle / (10e12 * 0.4), rel=1e-12)
    for outside, share in ((1e3, 0.1), (1e15, 0.7)):
        expected = overhead + outside / (10e12 * share)
        assert plain.seconds("matmul", outside, 0.0) == pytest.approx(expected, rel=1e-12)
    bound = plain.seconds("matmul", 1e6, 1e9)  # bound by memory
    assert bound == pytest.approx(overhead + 1e9 / (500e9 * 0.8), rel=1e-12)
    assert plain.seconds("elementwise", 0.0, 0.0) == overhead


def test_kinds_and_types_without_a_curve_of_their_own() -> None:
    both = [
        {"dtype": "fp16", "by": "flop", "points": ((1.0, 0.25),)},
        {"dtype": "fp32", "by": "flop", "points": ((1.0, 0.5),)},
    ]
    plain = device(efficiency={"convolution": tuple(both), "matmul": PLAIN["efficiency"]["matmul"]})
    work = 1e12
    assert plain.seconds("convolution", work, 0.0, "fp32") == pytest.approx(work / 5e12, rel=1e-4)
    assert plain.seconds("convolution", work, 0.0, "fp16") == pytest.approx(work / 5e12, rel=1e-4)
    assert plain.seconds("matmul", work, 0.0, "fp16") == pytest.approx(work / 14e12, rel=1e-4)
    assert plain.seconds("softmax", 0.0, work) == pytest.approx(work / 500e9, rel=1e-4)  # no curve: all of it
    assert device().seconds("convolution", work, 0.0) == device().seconds("matmul", work, 0.0)
    assert device().seconds("pooling", 0.0, work) == device().seconds("elementwise", 0.0, work)
    with pytest.raises(InputError, match="fp32, fp16"):
        plain.seconds("matmul", work, 0.0, "bf16")


def test_halving_the_batch() -> None:
    """Work of samples halves; what is moved whatever the batch (weights) does not, nor does the launch."""
    rows = [
        Operation(0, False, "elementwise", 0.0, 1e8, 4e8),
        Operation(0, True, "elementwise", 0.0, 1e8, 4e8),
    ]
    operations = Operations.of(["layer"], [100], rows)
    plain = device()
    for batch in (32, 16):
        step = Workload("one", operations, batch).step(plain)
        expected = 2 * (5e-6 + 4 * (1e8 * batch + 4e8) / (500e9 * 0.8))
        assert step.total == pytest.approx(expected, rel=1e-12)
    whole, half = (workload(batch).step(profiles.load("p100_sxm2")) for batch in (64, 32))
    assert 0.5 < half.total / whole.total < 0.65
    assert half.total > half.forward > 0


def test_step_of_a_model() -> None:
    model = workload()
    step = model.step(profiles.load("p100_sxm2"))
    assert step.total == step.ready[-1]
    assert step.forward + step.backward == pytest.approx(step.total, rel=1e-15)
    assert (np.diff(step.ready) >= 0).all()
    assert step.ready[0] > step.forward
    assert step.nbytes.sum() == model.value_bytes == 4 * 11_689_512
    assert len(step.ready) == 41  # 20 convolutions, 20 normalisations, 1 classifier
    assert step.nbytes[0] == 4 * (512 * 1000 + 1000)  # the classifier's gradient comes first
    assert step.nbytes[-1] == 4 * 64 * 3 * 49  # the first convolution's last


def test_a_faster_device_is_faster_and_everything_scales() -> None:
    """Law 6: speeds times k and fixed times over k give every time over k."""
    k = 4.0
    slow = device()
    fast = device(
        peak={"fp32": "40 TFLOP/s"},
        memory={"size": "16 GB", "bandwidth": "2 TB/s"},
        launch_overhead={"value": "1.25 us"},
    )
    one, other = (workload().step(profile) for profile in (slow, fast))
    assert other.total == pytest.approx(one.total / k, rel=1e-9)
    assert other.ready == pytest.approx(one.ready / k, rel=1e-9)


def test_types_of_numbers() -> None:
    assert workload(dtype="fp16").value_bytes == 2 * 11_689_512
    assert workload(dtype="fp16", gradient_dtype="fp32").value_bytes == 4 * 11_689_512
    assert workload(dtype="fp64").value_bytes == 8 * 11_689_512
    volta = profiles.load("v100_16gb_sxm")
    assert workload(dtype="fp16").step(volta).total < workload().step(volta).total / 2
    with pytest.raises(InputError, match="p100_sxm2"):
        workload(dtype="bf16").step(profiles.load("p100_sxm2"))


@given(st.floats(1e4, 1e9))
def test_buckets(bucket_bytes: float) -> None:
    step = _STEP
    ready, nbytes = step.buckets(bucket_bytes)
    assert nbytes.sum() == step.nbytes.sum()
    assert (np.diff(ready) >= 0).all()
    assert ready[-1] == step.total
    assert (nbytes[:-1] >= bucket_bytes).all()
    ends = np.cumsum(nbytes)
    whole = np.isin(ends, np.cumsum(step.nbytes))
    assert whole.all()  # layers are not cut
    assert ready.tolist() == [step.ready[np.searchsorted(np.cumsum(step.nbytes), end)] for end in ends]


_STEP = workload().step(profiles.load("p100_sxm2"))


def test_one_bucket_and_buckets_by_hand() -> None:
    whole = _STEP.buckets()
    assert whole[0].tolist() == [_STEP.total]
    assert whole[1].tolist() == [_STEP.nbytes.sum()]
    step = StepTime(1.0, 3.0, 4.0, np.array([2.0, 3.0, 3.5, 4.0]), np.array([10.0, 30.0, 5.0, 5.0]))
    ready, nbytes = step.buckets(25.0)
    assert ready.tolist() == [3.0, 4.0]
    assert nbytes.tolist() == [40.0, 10.0]


def test_ideal_device() -> None:
    ideal = TypeAdapter(Profile).validate_python({"kind": "constant", "step": "100 ms"})
    assert isinstance(ideal, ConstantDevice)
    for batch in (1, 32):
        step = workload(batch).step(ideal)
        assert step.total == 0.1 == step.ready[-1]
        assert step.forward == pytest.approx(0.1 / 3, rel=0.05)
        assert (np.diff(step.ready) >= 0).all()
    assert optimizer_seconds(ideal, 10**9, 7) == 0.0


def test_optimiser_by_hand() -> None:
    plain = device()
    expected = 5e-6 + 1e8 * 5 * 4 / (500e9 * 0.8)
    assert optimizer_seconds(plain, 10**8, 5) == pytest.approx(expected, rel=1e-12)
    assert optimizer_seconds(plain, 10**8, 7) > optimizer_seconds(plain, 10**8, 3)


def test_a_problem_costs_its_own_model() -> None:
    problem = DigitsMlp()
    own = Workload.of_layers(problem.name, problem.layers(), 32)
    assert own.parameters == problem.parameters
    assert own.flop_per_sample == pytest.approx(problem.flop_per_sample, rel=1e-12)
    step = own.step(profiles.load("p100_sxm2"))
    assert step.nbytes.sum() == own.value_bytes
    assert step.ready[-1] == step.total
    traced = WorkloadSpec(model="digits_mlp", batch=32).build(models.load)
    assert step.total == pytest.approx(traced.step(profiles.load("p100_sxm2")).total, rel=0.5)


def test_memory_grows_with_batch_and_optimiser() -> None:
    small, large = workload(1), workload(65)
    assert large.memory_bytes() - small.memory_bytes() == 64 * small.operations.kept.sum() * 4
    assert small.memory_bytes(2) - small.memory_bytes() == 2 * 4 * small.parameters
    assert small.memory_bytes() > 2 * small.value_bytes


@pytest.mark.parametrize(
    "change",
    [
        {"efficiency": {"matmul": {"by": "flop", "points": ((1e9, 0.7), (1e6, 0.1))}}},
        {"efficiency": {"matmul": {"by": "flop", "points": ((1e9, 70.0),)}}},
        {"efficiency": {"matmul": {"by": "flop", "points": ()}}},
        {"efficiency": {"product": {"by": "flop", "points": ((1e9, 0.7),)}}},
        {"peak": {}},
        {"peak": {"fp32": 10.6}},
        {"peak": {"int8": "1 TFLOP/s"}},
        {"colour": "green"},
    ],
)
def test_wrong_profiles_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        device(**change)


def test_timing_needs_no_torch() -> None:
    code = (
        "import sys; from calibration import operations, profiles;"
        "from simulator.workload import WorkloadSpec;"
        "WorkloadSpec(model='vgg16', batch=8).build(operations.load).step(profiles.load('a100'));"
        "sys.exit(sum(name in sys.modules for name in ('torch', 'pandas', 'sklearn', 'plotly')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
