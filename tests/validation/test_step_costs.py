"""Predicted times of a gradient against published measurements, where the reference data are present.

Bands are wide: most efficiencies in the profiles are from memory. Each test states the error it saw when
written (2026-12). The V100's convolution in fp32 was set with one of the rows in view and the H100's tf32
was fitted to the trace it is compared with: those two show consistency, not skill.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

import pytest
from torch import nn

from calibration import operations as models
from calibration import profiles
from calibration.operations.trace import trace
from simulator.cost import optimizer_seconds
from simulator.operations import Operations
from simulator.workload import Workload

DATA = Path(__file__).parents[2] / "../shared/data"
CNN = DATA / "reference/cnn_data_parallel_scaling.csv"
DLPERF = DATA / "reference/dlperf_v100_scaling.csv"
VGG13 = DATA / "inputs/triosim/h100_bs128_vgg13/trace.csv"
MOMENTUM = 5  # vectors read or written for each parameter


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def resnet50(batch: int, dtype: str) -> Workload:
    return Workload("resnet50", models.load("resnet50"), batch, dtype, dtype)


@pytest.mark.skipif(not CNN.exists(), reason="no reference tables here")
def test_resnet50_on_p100() -> None:
    """Goyal et al. 2017: 120 ms for the backward pass of 32 images; over 16 min for an epoch on 8 GPUs."""
    rows = {row["row_id"]: row for row in table(CNN)}
    step = resnet50(32, "fp32").step(profiles.load("p100_sxm2"))
    backward = float(rows["cnn_data_parallel_scaling:0007"]["value"]) / 1000
    assert step.backward == pytest.approx(backward, rel=0.25)  # -3 %
    epoch = float(rows["cnn_data_parallel_scaling:0006"]["value"]) * 60
    iteration = epoch / (1_281_167 / 256)  # with input and what communication is not hidden
    assert 0.75 * iteration < step.total < 1.05 * iteration  # -6 %


@pytest.mark.skipif(not DLPERF.exists(), reason="no reference tables here")
@pytest.mark.parametrize(("precision", "dtype", "band"), [("FP32", "fp32", 0.2), ("AMP/FP16", "fp16", 0.35)])
def test_resnet50_on_v100(precision: str, dtype: str, band: float) -> None:
    """Rates of several frameworks on one GPU, which differ by up to 1.2 (fp32) and 1.7 times (fp16)."""
    profile = profiles.load("v100_16gb_sxm")
    ratios = []
    for row in table(DLPERF):
        if row["model"] == "ResNet50" and row["n_gpus"] == "1" and row["precision"] == precision:
            model = resnet50(int(float(row["batch_per_gpu"])), dtype)
            seconds = model.step(profile).total + optimizer_seconds(profile, model.parameters, MOMENTUM)
            ratios.append(model.batch / seconds / float(row["throughput"]))
    assert len(ratios) >= 5
    assert abs(median(ratios) - 1) < band  # +2 % and +2 %; single rows -6 to +15 % and -24 to +32 %


def vgg13() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for outputs in (64, 128, 256, 512, 512):
        for _ in range(2):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.ReLU(inplace=True)]
            channels = outputs
        layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(7), nn.Flatten()]
    for inputs in (512 * 49, 4096):
        layers += [nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout()]
    return nn.Sequential(*layers, nn.Linear(4096, 1000))


@pytest.mark.skipif(not VGG13.exists(), reason="no trace here")
def test_vgg13_on_h100_by_phase() -> None:
    """A torch trace of 128 images (sarchlab/triosim); its matrix products ran in fp32, ours in tf32."""
    operations: Operations = trace(vgg13, (3, 224, 224))
    step = Workload("vgg13", operations, 128, "tf32", "fp32").step(profiles.load("h100_80gb_sxm"))
    measured = {"forward": 0.0, "backward": 0.0}
    for row in table(VGG13):
        if row["stage"] in measured:
            measured[row["stage"]] += float(row["Operator_cudatime"]) * 1e-6
    assert step.forward == pytest.approx(measured["forward"], rel=0.25)  # +14 %
    assert step.backward == pytest.approx(measured["backward"], rel=0.25)  # -9 %
