"""Figures as plain data for plotly.js, without colours of their own: these are CSS variables of the page.

`draw.js` replaces `var(--name)` by the page's colour, so that a figure follows light and dark.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Colours and dashes of variants repeat after this many.
COLOURS = 10
DASHES = ("solid", "dash", "dot", "dashdot")

_TYPES = {"float64": "f8", "float32": "f4", "int32": "i4", "int16": "i2", "uint8": "u1", "int8": "i1"}


@dataclass(frozen=True)
class Figure:
    """One chart.

    Attributes:
        name: its place in the page.
        traces, layout: what plotly.js draws.
        height: pixels.
        alt: what the chart says, for those who do not see it.
    """

    name: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    height: int
    alt: str


def colour(number: int, part: str = "line") -> str:
    """The colour of variant `number`: its `line`, or the `band` behind it."""
    return f"var(--{part}{number % COLOURS})"


def dash(number: int) -> str:
    """The dash of variant `number`: solid unless its colour is taken."""
    return DASHES[number // COLOURS % len(DASHES)]


def plain(text: str, limit: int = 60) -> str:
    """A text for plotly, which reads some HTML: escaped, and shortened in the middle.

    >>> plain("<b>x</b>"), plain("h0->switch", 7)
    ('&lt;b&gt;x&lt;/b&gt;', 'h0-…tch')
    """
    if len(text) > limit:
        half = (limit - 1) // 2
        text = f"{text[:half]}…{text[len(text) - half :]}"
    return html.escape(text, quote=False)


def packed(values: NDArray[Any]) -> dict[str, Any]:
    """An array in plotly's binary form (base64), a third of the size of text and quicker to read.

    >>> packed(np.array([1, 2], dtype=np.uint8))
    {'dtype': 'u1', 'bdata': 'AQI='}
    """
    array = np.ascontiguousarray(values)
    made = {"dtype": _TYPES[array.dtype.name], "bdata": base64.b64encode(array.tobytes()).decode()}
    return made if array.ndim == 1 else {**made, "shape": f"{array.shape[0]}, {array.shape[1]}"}


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """An axis with a title (with its unit)."""
    return {"title": {"text": title, "standoff": 8}, "automargin": True, **more}


def time_unit(end: float) -> tuple[float, str]:
    """Size and name of the unit of a time axis that reaches to `end` seconds.

    >>> time_unit(30.0), time_unit(0.02), time_unit(90000.0)
    ((1.0, 's'), (0.001, 'ms'), (3600.0, 'h'))
    """
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if end >= 5 * size or (unit == "s" and end >= 0.5):
            return size, unit
    return 1e-6, "us"
