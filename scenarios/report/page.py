"""The page: one HTML file that needs nothing else, neither network nor neighbours.

Whatever comes from a scenario file (names of variants, links, hosts) is escaped: in HTML by `html.escape`,
within scripts by writing `<` as an escape of JSON. A content security policy forbids to load anything.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scenarios.report.figure import Figure

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; base-uri 'none'; form-action 'none'"
)


def page(title: str, body: str, figures: Sequence[Figure]) -> str:
    """The whole document."""
    css = files("scenarios.report").joinpath("page.css").read_text(encoding="utf-8")
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>\n{css}</style>\n</head>\n"
    )
    without = '<noscript><p class="note">The charts need JavaScript; the tables do not.</p></noscript>'
    return f"{head}<body>\n<main>\n{without}\n{body}\n</main>\n{_scripts(figures)}</body>\n</html>\n"


def _scripts(figures: Sequence[Figure]) -> str:
    """The data of the figures, plotly.js once, and the code that draws."""
    data = "".join(_data(figure) for figure in figures)
    code = files("scenarios.report").joinpath("draw.js").read_text(encoding="utf-8")
    return f"{data}<script>{plotly_js()}</script>\n<script>\n{code}</script>\n"


def plotly_js() -> str:
    """The code of plotly.js as the Python package ships it, without importing the package."""
    found = find_spec("plotly")
    assert found is not None
    assert found.submodule_search_locations is not None
    package = Path(found.submodule_search_locations[0])
    return (package / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


def _data(figure: Figure) -> str:
    value = {"traces": figure.traces, "layout": figure.layout, "height": figure.height}
    return f'<script type="application/json" id="{figure.name}-data">{script_json(value)}</script>\n'


def script_json(value: Any) -> str:
    r"""JSON that may stand in a script element: no text in it can end the element or open a comment.

    >>> print(script_json("</script><!--"))
    "\u003c/script\u003e\u003c!--"
    """
    written = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def text(value: object) -> str:
    """Text for HTML, also within attributes."""
    return html.escape(str(value), quote=True)


def place(figure: Figure) -> str:
    """Where a figure is drawn."""
    said = f'role="img" aria-label="{text(figure.alt)}"'
    inner = f'<div class="chart" id="{figure.name}" {said} style="height:{figure.height}px"></div>'
    return f"<figure>{inner}</figure>"


def section(title: str, *parts: str) -> str:
    """A section with its heading; nothing if it has no parts."""
    there = [part for part in parts if part]
    return f"<section>\n<h2>{text(title)}</h2>\n" + "\n".join(there) + "\n</section>" if there else ""


def paragraph(said: str, kind: str = "") -> str:
    """A paragraph of plain text; nothing if there is none."""
    css = f' class="{kind}"' if kind else ""
    return f"<p{css}>{text(said)}</p>" if said else ""


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[str] = (), kind: str = ""
) -> str:
    """A table of cells that are HTML already; `marks` are the classes of rows, `kind` that of the table."""
    names = "".join(f"<th>{text(name)}</th>" for name in head)
    body = "".join(
        f'<tr class="{mark}">' + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n"
        for row, mark in zip(rows, marks or [""] * len(rows), strict=True)
    )
    rows_below = f"<thead><tr>{names}</tr></thead>\n<tbody>\n{body}</tbody>"
    return f'<div class="scroll"><table class="{kind}">\n{rows_below}</table></div>'
