"""Numbers as people write them: three significant digits, a unit that fits."""

from __future__ import annotations

import math
from collections.abc import Sequence

# (from this value on, size of the unit, unit): 100 s, but 1.67 min from there on
_TIMES = (
    (172800.0, 86400.0, "d"), (7200.0, 3600.0, "h"), (100.0, 60.0, "min"), (1.0, 1.0, "s"),
    (1e-3, 1e-3, "ms"), (1e-6, 1e-6, "us"), (1e-9, 1e-9, "ns"),
)  # fmt: skip
_BYTES = tuple(
    (size, size, unit) for size, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
)


def number(value: float | None, missing: str = "-") -> str:
    """Three significant digits, thousands separated; small and huge ones as powers of ten.

    >>> number(0.04512), number(12345.6), number(7), number(None), number(2.5e-7)
    ('0.0451', '12,346', '7', '-', '2.5e-07')
    """
    if value is None or math.isnan(value):
        return missing
    if math.isinf(value) or (value != 0 and not 1e-4 <= abs(value) < 1e9):
        return f"{value:.3g}"
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.3g}"


def seconds(value: float | None, missing: str = "-") -> str:
    """A duration in the unit that fits.

    >>> seconds(0.00035), seconds(4.5), seconds(75), seconds(3 * 86400), seconds(0)
    ('350 us', '4.5 s', '75 s', '3 d', '0 s')
    """
    return _scaled(value, _TIMES, "s", missing)


def nbytes(value: float | None, missing: str = "-") -> str:
    """A size in decimal units.

    >>> nbytes(44.7e6), nbytes(0)
    ('44.7 MB', '0 B')
    """
    return _scaled(value, _BYTES, "B", missing)


def _scaled(value: float | None, units: Sequence[tuple[float, float, str]], base: str, missing: str) -> str:
    if value is None or math.isnan(value):
        return missing
    fitting = ((size, unit) for start, size, unit in units if start <= abs(value) < math.inf)
    size, unit = next(fitting, (1.0, base))
    return f"{number(value / size)} {unit}"


def percent(value: float | None, missing: str = "-") -> str:
    """A share in percent.

    >>> percent(0.553), percent(0.00042), percent(0.0)
    ('55.3 %', '0.042 %', '0 %')
    """
    return missing if value is None or math.isnan(value) else f"{100 * value:.3g} %"


def factor(value: float) -> str:
    """A factor with two decimals below ten.

    >>> factor(2.1789), factor(13.2), factor(1.004)
    ('2.18', '13.2', '1.00')
    """
    return f"{value:.2f}" if value < 10 else number(float(f"{value:.3g}"))


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "seed"), plural(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
