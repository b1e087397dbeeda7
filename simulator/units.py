"""Quantities at the border: strings with a unit outside, plain floats in SI inside.

    >>> parse("100 Gbit/s", "bandwidth")
    12500000000.0
    >>> format(12.5e9, "bandwidth")
    '100 Gbit/s'

Seconds, bytes, bytes/s, FLOP, FLOP/s, watts. Reading is exact: number times unit in rationals, rounded at the
end. Writing keeps that: `parse(format(v)) == v`. GB is 1e9 bytes and GiB 2^30, always.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

Dimension = Literal["time", "bytes", "bandwidth", "flop", "flops", "power"]

_SI = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi")
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_LONGEST = 100  # characters of a quantity: an end for numbers of a million digits
_EXPONENT = 400  # beyond the floats, and cheap for exact arithmetic


def _scaled(unit: str, prefixes: tuple[str, ...], base: int = 1000, first: int = 0) -> dict[str, Fraction]:
    return {f"{prefix}{unit}": Fraction(base) ** (first + n) for n, prefix in enumerate(prefixes)}


_BYTES = _scaled("B", _SI[:6]) | _scaled("B", _BINARY, 1024, 1)
_UNITS: dict[str, dict[str, Fraction]] = {
    "time": {
        **{"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 10**3), "s": Fraction(1)},
        **{"min": Fraction(60), "h": Fraction(3600), "d": Fraction(86400)},
    },
    "bytes": _BYTES,
    "bandwidth": {f"{prefix}bit/s": Fraction(1000**n, 8) for n, prefix in enumerate(_SI[:6])}
    | {f"{unit}/s": scale for unit, scale in _BYTES.items()},
    "flop": _scaled("FLOP", _SI),
    "flops": _scaled("FLOP/s", _SI),
    "power": {"W": Fraction(1), "kW": Fraction(1000), "MW": Fraction(10**6)},
}
_SAID: dict[str, tuple[str, str]] = {  # how a message calls the dimension, with an example
    "time": ("a time with its unit", "3 us"),
    "bytes": ("a size with its unit", "25 MB"),
    "bandwidth": ("a bandwidth with its unit", "25 Gbit/s"),
    "flop": ("an amount of arithmetic with its unit", "2 GFLOP"),
    "flops": ("a speed of arithmetic with its unit", "10.6 TFLOP/s"),
    "power": ("a power with its unit", "300 W"),
}
_BASE = {"time": "s", "bytes": "B", "bandwidth": "B/s", "flop": "FLOP", "flops": "FLOP/s", "power": "W"}
_SPELLED = {  # what people write, in lower case, and what they mean
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("minute", "minutes", "mins"), "min"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("µs", "μs", "usec", "microseconds"), "us"),
    **dict.fromkeys(("msec", "milliseconds"), "ms"),
    **dict.fromkeys(("nsec", "nanoseconds"), "ns"),
    **dict.fromkeys(("byte", "bytes"), "B"),
    "m": "min ms",
    **dict.fromkeys(("watt", "watts"), "W"),
}

_LINE_RATES = {rate * 1e9 for rate in (1, 2.5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800, 1600)}
"""Rates of Ethernet and InfiniBand, bit/s: written in bits."""


class UnitError(ValueError):
    """A quantity that cannot be read: what was `found`, what was `expected`, a `hint` how to mend it."""

    def __init__(self, found: str, expected: str, hint: str = "") -> None:
        super().__init__(f"found {found}, expected {expected}" + (f" ({hint})" if hint else ""))
        self.found, self.expected, self.hint = found, expected, hint


class Quantity(float):
    """A float known to be in SI units, for defaults and for building specs in Python: `Quantity(3.125e9)`."""

    __slots__ = ()


def quantity(text: str) -> Quantity:
    """The SI value of a text whose unit says its dimension: `quantity("25 MB")`."""
    unit = text.split()[-1]
    dimension = next(name for name, units in _UNITS.items() if unit in units)
    return Quantity(parse(text, dimension))


def parse(text: str, dimension: str) -> float:
    """The SI value of `text`, for example seconds of "3 us".

    Args:
        text: a number and a unit, with or without a blank between.
        dimension: time, bytes, bandwidth, flop, flops or power.

    Raises:
        UnitError: no number, no unit, a unit of something else, or a number that no float can hold.
    """
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    shown = repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
    if match is None:
        raise UnitError(shown, _expected(dimension), "a number, then a unit")
    number, unit = match.groups()
    scale = _UNITS[dimension].get(unit)
    if scale is None:
        raise UnitError(shown, _expected(dimension), _unit_hint(number, unit, dimension))
    return _product(number, scale, shown)


def _product(number: str, scale: Fraction, shown: str) -> float:
    """Number times scale, rounded once."""
    decimal = Decimal(number)
    if decimal == 0:
        return 0.0
    if abs(decimal.adjusted()) < _EXPONENT:
        try:
            value = float(Fraction(decimal) * scale)
        except OverflowError:
            value = 0.0
        if value != 0.0:
            return value
    raise UnitError(shown, "a quantity that a float can hold", "about 1e-300 to 1e300 in SI units")


def _expected(dimension: str) -> str:
    said, example = _SAID[dimension]
    return f"{said}, such as {example!r}"


def _unit_hint(number: str, unit: str, dimension: str) -> str:
    """What the user may have meant by a unit that this dimension does not have."""
    units = _UNITS[dimension]
    if not unit:
        base = {
            "time": "s",
            "bytes": "B",
            "bandwidth": "B/s",
            "flop": "FLOP",
            "flops": "FLOP/s",
            "power": "W",
        }
        return f"a unit is missing: write {number + ' ' + base[dimension]!r} if that is meant"
    for other, those in _UNITS.items():
        if unit in those:
            return f"{unit!r} is a unit of {other}, not of {dimension}"
    meant = [f"{one!r}" for one in _meant(unit, units)]
    return f"did you mean {' or '.join(meant)}?" if meant else "units: " + " ".join(units)


def _meant(unit: str, units: dict[str, Fraction]) -> list[str]:
    spelled = _SPELLED.get(unit.lower(), "").split()
    if spelled and all(one in units for one in spelled):
        return spelled
    if "bit/s" in units and (match := re.fullmatch(r"([kKmMgGtTpP]?)([bB])(?:ps|/s)", unit)):
        prefix = match[1].upper().replace("K", "k")
        return [f"{prefix}B/s"] if match[2] == "B" else [f"{prefix}bit/s", f"{prefix}B/s"]
    folded = {known.lower(): known for known in units}
    stem = unit.lower().rstrip("s").removesuffix("yte")
    close = [tried for tried in (unit.lower(), stem, f"{stem}/s") if tried in folded]
    close = close or get_close_matches(unit.lower(), folded, n=1)
    return [folded[close[0]]] if close else []


@dataclass(frozen=True, slots=True, order=True)
class _Written:
    """One way to write a quantity; the least is the one chosen."""

    odd: bool
    digits: int
    width: int
    rank: int
    text: str


def format(value: float, dimension: str) -> str:  # noqa: A001 (read as `units.format`, beside `units.parse`)
    """The shortest text with a unit that reads back as exactly `value` (SI).

    >>> format(3e-6, "time"), format(90.0, "time"), format(14400.0, "time")
    ('3 us', '90 s', '4 h')
    """
    if value == 0:
        return f"0 {_BASE[dimension]}"
    # As written in shortest decimals, 15 ns; and as the float really is, for units that are powers of two.
    exact = (Fraction(repr(float(value))), Fraction(value))
    units = enumerate(_UNITS[dimension])
    ways = (_write(value, amount, dimension, *unit) for unit in units for amount in exact)
    return min(way for way in ways if way is not None).text


def _write(value: float, amount: Fraction, dimension: str, rank: int, unit: str) -> _Written | None:
    """`amount`, about `value`, in `unit`, if that reads back as `value` and is sensible."""
    try:
        scaled = float(amount / _UNITS[dimension][unit])
    except OverflowError:
        return None
    number = repr(scaled).removesuffix(".0")
    if not _reads(f"{number} {unit}", dimension, value):
        return None
    digits = len(number.split("e")[0].replace(".", "").strip("-0"))
    if unit in ("min", "h", "d") and (value < 600 or digits > 3):
        return None  # 90 s, not 1.5 min
    bits = unit.endswith("bit/s")
    if bits:  # 25 Gbit/s, yet 12 GB/s rather than 96 Gbit/s
        digits += -2 if value * 8 in _LINE_RATES else 1
    odd = not 1 <= abs(scaled) < 1000
    return _Written(odd, digits, 1000 * bits + len(number), rank, f"{number} {unit}")


def _reads(text: str, dimension: str, value: float) -> bool:
    try:
        return parse(text, dimension) == value
    except UnitError:
        return False


def _validator(dimension: str, least: Literal["any", "zero", "above zero"]) -> Callable[[Any], float]:
    """Reads a string with a unit, or takes a `Quantity`; refuses bare numbers."""
    bound = {"any": "", "zero": ", zero or more", "above zero": ", more than zero"}[least]

    def validate(value: Any) -> float:
        if isinstance(value, Quantity):
            number = float(value)
        elif isinstance(value, str):
            number = parse(value, dimension)
        else:
            raise UnitError(_shown(value), _expected(dimension), _bare_hint(value, dimension))
        if (number < 0 and least != "any") or (number == 0 and least == "above zero"):
            raise UnitError(repr(value), _expected(dimension) + bound)
        return number

    return validate


_KINDS: dict[type, str] = {dict: "mapping", list: "list"}


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the bare number {value}"
    return f"a {_KINDS.get(type(value), type(value).__name__)}"


def _bare_hint(value: Any, dimension: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _unit_hint(str(value), "", dimension)
    return ""


def _field(dimension: str, least: Literal["any", "zero", "above zero"]) -> Any:
    units = "|".join(_UNITS[dimension])
    sign = r"-?" if least == "any" else ""
    pattern = rf"^\s*\+?{sign}(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*({units})\s*$"
    schema = {"type": "string", "pattern": pattern, "description": _expected(dimension)}
    return (
        PlainValidator(_validator(dimension, least)),
        PlainSerializer(lambda value: format(value, dimension), return_type=str, when_used="json"),
        WithJsonSchema(schema),
    )


Seconds = Annotated[float, *_field("time", "zero")]
"""Seconds, zero or more."""
PositiveSeconds = Annotated[float, *_field("time", "above zero")]
"""Seconds, more than zero."""
Bytes = Annotated[float, *_field("bytes", "zero")]
"""Bytes, zero or more."""
PositiveBytes = Annotated[float, *_field("bytes", "above zero")]
"""Bytes, more than zero."""
Bandwidth = Annotated[float, *_field("bandwidth", "above zero")]
"""Bytes per second, more than zero."""
Flop = Annotated[float, *_field("flop", "zero")]
"""Floating-point operations, zero or more."""
Flops = Annotated[float, *_field("flops", "above zero")]
"""Floating-point operations per second, more than zero."""
Watts = Annotated[float, *_field("power", "zero")]
"""Watts, zero or more."""
