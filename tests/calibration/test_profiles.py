"""Shipped profiles load, say their sources, and agree with the reference table where it is present."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from calibration import profiles
from simulator.devices import DeviceProfile
from simulator.errors import InputError

REFERENCE = Path(__file__).parents[2] / "../shared/data/reference/hardware_specs.csv"
NAMES = [
    "k80",
    "k20x",
    "gtx_1080_ti",
    "p100_sxm2",
    "v100_16gb_sxm",
    "v100_32gb_sxm",
    "a100_40gb_sxm",
    "a100_80gb_sxm",
    "h100_80gb_sxm",
    "h100_96gb_hbm2e",
    "h200_sxm",
    "b200_sxm",
    "b300_sxm",
    "gb200",
    "gb300",
    "tpu_v4",
    "knl_7250",
    "xeon_6226r",
    "xeon_2x14",
]


def shipped(name: str) -> DeviceProfile:
    profile = profiles.load(name)
    assert isinstance(profile, DeviceProfile)
    return profile


def test_all_names_are_there() -> None:
    assert set(NAMES) <= set(profiles.names())
    for alias in ("a100", "h100", "h100_80gb", "a100_80gb", "ampere"):
        assert profiles.load(alias).name in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_profile(name: str) -> None:
    profile = shipped(name)
    assert profile.name == name
    assert profile.source.date >= "2026-12-01"
    assert profile.source.table or "memory" in profile.source.what
    dtype = next(iter(profile.peak))
    best = 1e12 / profile.flops(dtype)
    assert best < profile.seconds("matmul", 1e12, 0.0, dtype) < 10 * best
    assert profile.launch_overhead.source == "memory"
    assert profile.power is None or profile.power.idle < profile.power.busy
    curves = [
        c for curve in profile.efficiency.values() for c in (curve if isinstance(curve, tuple) else (curve,))
    ]
    assert all(curve.source for curve in curves)


@pytest.mark.skipif(not REFERENCE.exists(), reason="no reference tables here")
def test_figures_are_those_of_the_table() -> None:
    with REFERENCE.open(encoding="utf-8") as file:
        rows = {row["row_id"]: row for row in csv.DictReader(file)}
    checked = 0
    for profile in map(shipped, NAMES):
        if profile.source.table is None:
            continue
        row = rows[profile.source.table]
        for dtype, column in (
            ("fp32", "fp32_tflops"),
            ("tf32", "tf32_tflops"),
            ("fp16", "fp16_tflops_dense"),
            ("bf16", "bf16_tflops_dense"),
        ):
            if row[column] and dtype in profile.peak:
                assert profile.peak[dtype] == pytest.approx(float(row[column]) * 1e12, rel=1e-9)
                checked += 1
        if profile.memory.source is None:
            assert profile.memory.bandwidth == pytest.approx(float(row["hbm_TBps"]) * 1e12, rel=1e-9)
            assert str(round(profile.memory.size / 1e9)) in row["hbm_gb"].split()
        if profile.nvlink is not None:
            expected = float(row["nvlink_or_xgmi_unidir_GBps"]) * 1e9
            assert profile.nvlink.bandwidth == pytest.approx(expected, rel=1e-9)
    assert checked > 30


def test_unknown_names_say_what_there_is() -> None:
    with pytest.raises(InputError, match="did you mean 'h100_80gb_sxm'") as said:
        profiles.load("h100_80gb_sxmm")
    assert "p100_sxm2" in said.value.expected


HEAD = "paceline: 1\nprofile:\n  kind: device\n  name: mine\n  source: {what: mine, date: 2026-12-01}\n"
BODY = """  peak: {fp32: 1 TFLOP/s}
  memory: {size: 1 GB, bandwidth: 10 GB/s}
  launch_overhead: {value: 1 us}
"""


def test_own_files(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(HEAD + BODY)
    (tmp_path / "ideal.yaml").write_text("paceline: 1\nprofile: {kind: constant, step: 100 ms}\n")
    assert profiles.load("mine.yaml", tmp_path).seconds("matmul", 1e12, 0.0) == 1.0 + 1e-6
    assert profiles.load(str(tmp_path / "ideal.yaml")).name == "constant"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (HEAD + BODY.replace("1 TFLOP/s", "1"), 6, "a unit is missing"),
        (HEAD + BODY.replace("fp32", "fp33"), 6, "fp33"),
        (HEAD + BODY + "  colour: green\n", 9, "colour"),
        (HEAD, 2, "peak"),
        ("paceline: 2\nprofile: {kind: constant, step: 1 s}\n", 1, "expected 1"),
        ("profile: {kind: constant, step: 1 s}\n", 1, "paceline"),
        ("paceline: 1\nprofile: {kind: ideal, step: 1 s}\n", 2, "'ideal'"),
        ("paceline: 1\nprofile: {kind: constant, step: 1 s}\n---\na: 1\n", 4, "one document"),
        ("- 1\n", 1, "a mapping"),
    ],
)
def test_wrong_files_are_told_with_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as error:
        profiles.read_profile(file)
    assert error.value.file == str(file)
    assert error.value.line == line
