"""Quantities: read exactly, refused with a hint, written so that they read back the same."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from simulator import units
from simulator.spec import Spec
from simulator.units import (
    Bandwidth,
    Bytes,
    Flop,
    Flops,
    PositiveBytes,
    PositiveSeconds,
    Quantity,
    Seconds,
    UnitError,
    Watts,
)

DIMENSIONS = ("time", "bytes", "bandwidth", "flop", "flops", "power")


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("3 us", "time", 3e-6),
        ("0.5 s", "time", 0.5),
        ("1.5 min", "time", 90.0),
        ("4 h", "time", 14_400.0),
        ("60 d", "time", 5_184_000.0),
        ("100 ns", "time", 1e-7),
        ("  7ms ", "time", 0.007),
        ("25 MB", "bytes", 25e6),
        ("16 GiB", "bytes", 16 * 2**30),
        ("80 GB", "bytes", 80e9),
        ("100 Gbit/s", "bandwidth", 12.5e9),
        ("12 GB/s", "bandwidth", 12e9),
        ("1 KiB/s", "bandwidth", 1024.0),
        ("312 TFLOP/s", "flops", 312e12),
        ("1e3 GFLOP", "flop", 1e12),
        ("0.3 kW", "power", 300.0),
        ("+2.5e-3 s", "time", 0.0025),
        (".5 s", "time", 0.5),
        ("5. s", "time", 5.0),
        ("-3 s", "time", -3.0),
        ("0 s", "time", 0.0),
    ],
)
def test_reads_in_si(text, dimension, value):
    assert units.parse(text, dimension) == value


def test_reads_exactly():
    """Number times unit is rounded once: 0.1 ms is the float next to 1e-4, not 0.1 * 1e-3."""
    assert units.parse("0.1 ms", "time") == 1e-4
    assert units.parse("3 us", "time") == float(Fraction(3, 10**6))
    assert units.parse("2.3 Gbit/s", "bandwidth") == float(Fraction(23, 10) * 10**9 / 8)


@pytest.mark.parametrize(
    ("text", "dimension", "hint"),
    [
        ("25 Gbps", "bandwidth", "'Gbit/s' or 'GB/s'"),
        ("25 Gb/s", "bandwidth", "'Gbit/s' or 'GB/s'"),
        ("25 GBps", "bandwidth", "'GB/s'"),
        ("25 gb/s", "bandwidth", "'Gbit/s' or 'GB/s'"),
        ("25 Gbit", "bandwidth", "'Gbit/s'"),
        ("25 GB", "bandwidth", "a unit of bytes"),
        ("25", "bandwidth", "write '25 B/s'"),
        ("1 mb", "bytes", "'MB'"),
        ("1 Mb", "bytes", "'MB'"),
        ("1 gib", "bytes", "'GiB'"),
        ("1 megabytes", "bytes", "units: B kB"),
        ("3 sec", "time", "'s'"),
        ("3 Minutes", "time", "'min'"),
        ("3 m", "time", "'min' or 'ms'"),
        ("3 µs", "time", "'us'"),
        ("3 GB", "time", "a unit of bytes"),
        ("3", "time", "write '3 s'"),
        ("10 TFLOPS", "flops", "'TFLOP/s'"),
        ("10 TFLOP", "flops", "a unit of flop"),
        ("300 watts", "power", "'W'"),
        ("", "time", "a number, then a unit"),
        ("s", "time", "a number, then a unit"),
        ("nan s", "time", "a number, then a unit"),
        ("inf s", "time", "a number, then a unit"),
        ("1,000 s", "time", "units: ns"),
        ("1_000 s", "time", "units: ns"),
        ("٣ s", "time", "a number, then a unit"),
        ("3 s 4 s", "time", "units: ns"),
    ],
)
def test_refuses_with_a_hint(text, dimension, hint):
    with pytest.raises(UnitError) as caught:
        units.parse(text, dimension)
    assert hint in caught.value.hint
    assert repr(text) == caught.value.found
    assert "such as" in caught.value.expected


@pytest.mark.parametrize(
    "text", ["1e400 s", "1e-400 s", "1e999999999 s", "-1e999999999 s", f"{'9' * 90}e300 d"]
)
def test_numbers_that_no_float_holds(text):
    with pytest.raises(UnitError, match=r"a float can hold|a time"):
        units.parse(text, "time")


def test_long_texts_end_early():
    with pytest.raises(UnitError) as caught:
        units.parse("9" * 1_000_000 + " s", "time")
    assert len(str(caught.value)) < 300


@given(st.floats(min_value=0, max_value=1.7e308), st.sampled_from(DIMENSIONS))
def test_round_trip(value, dimension):
    assert units.parse(units.format(value, dimension), dimension) == value


@given(st.integers(1, 9_999), st.sampled_from(["ns", "us", "ms", "s"]))
def test_written_times_are_short(number, unit):
    """A time of few digits is written with as few."""
    written = units.format(units.parse(f"{number} {unit}", "time"), "time").split()[0]
    assert len(written.replace(".", "").strip("0")) <= len(str(number).strip("0"))


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("60 s", "time"), ("90 s", "time"), ("10 min", "time"), ("4 h", "time"), ("60 d", "time"),
        ("1 us", "time"), ("25 MB", "bytes"), ("16 GiB", "bytes"), ("100 Gbit/s", "bandwidth"),
        ("25 Gbit/s", "bandwidth"), ("400 Gbit/s", "bandwidth"), ("12 GB/s", "bandwidth"),
        ("732 GB/s", "bandwidth"), ("250 GB/s", "bandwidth"),
        ("10.6 TFLOP/s", "flops"), ("300 W", "power"), ("0 s", "time"), ("0 B", "bytes"),
    ],
)  # fmt: skip
def test_usual_quantities_are_written_as_people_do(text, dimension):
    assert units.format(units.parse(text, dimension), dimension) == text


class Everything(Spec):
    seconds: Seconds = Quantity(0.0)
    positive_seconds: PositiveSeconds = units.quantity("2 us")
    nbytes: Bytes = units.quantity("0 B")
    positive_bytes: PositiveBytes = units.quantity("25 MB")
    bandwidth: Bandwidth = units.quantity("25 Gbit/s")
    flop: Flop = units.quantity("1 GFLOP")
    flops: Flops = units.quantity("10.6 TFLOP/s")
    watts: Watts = units.quantity("300 W")


def test_fields_hold_si_and_dump_text():
    spec = Everything()
    assert spec.bandwidth == 3.125e9
    assert type(spec.bandwidth) is float
    dumped = spec.model_dump(mode="json")
    assert dumped["positive_bytes"] == "25 MB"
    assert Everything.model_validate(dumped) == spec
    assert spec.model_dump()["watts"] == 300.0


@pytest.mark.parametrize("value", [3, 3.5, 0, True, None, [1], {"s": 1}, math.inf])
def test_fields_refuse_bare_values(value):
    for field in Everything.model_fields:
        with pytest.raises(ValidationError):
            Everything.model_validate({field: value})


@pytest.mark.parametrize(
    ("field", "zero", "negative"),
    [
        ("seconds", True, "-1 s"), ("positive_seconds", False, "-1 s"), ("nbytes", True, "-1 B"),
        ("positive_bytes", False, "-1 B"), ("bandwidth", False, "-1 B/s"), ("flop", True, "-1 FLOP"),
        ("flops", False, "-1 FLOP/s"), ("watts", True, "-1 W"),
    ],
)  # fmt: skip
def test_signs(field, zero, negative):
    nought = negative.replace("-1", "0")
    with pytest.raises(ValidationError, match=r"zero or more|more than zero"):
        Everything.model_validate({field: negative})
    if zero:
        assert getattr(Everything.model_validate({field: nought}), field) == 0.0
    else:
        with pytest.raises(ValidationError, match="more than zero"):
            Everything.model_validate({field: nought})


def test_json_schema_accepts_what_is_read():
    class Quiet(GenerateJsonSchema):
        ignored_warning_kinds: ClassVar = {"non-serializable-default"}  # in SI: the schema has text

    schema = Everything.model_json_schema(schema_generator=Quiet)["properties"]
    assert re.search(schema["bandwidth"]["pattern"], "100 Gbit/s")
    assert not re.search(schema["bandwidth"]["pattern"], "100 Gbps")
    assert not re.search(schema["seconds"]["pattern"], "-1 s")
