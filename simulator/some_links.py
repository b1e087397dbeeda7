"""Which links and hosts a pattern means, by the names of nodes.

`h3->s0` is one direction, `h3<->s0` both, `s0` every link that begins or ends there. In names `*` stands for
any letters, `?` for one: `leaf*<->spine0`. Of parallel links `#1` behind means the second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from simulator.errors import InputError
from simulator.fabric import Fabric, IntArray
from simulator.spec import Spec

Pattern = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^\S+$")]
Patterns = Pattern | Annotated[tuple[Pattern, ...], Field(min_length=1)]

_ARROWS = re.compile(r"(?P<tail>.+?)(?P<arrow><->|->)(?P<head>.+?)(?:#(?P<number>\d+))?")


class Links(Spec):
    """Some links (`where: {link: PATTERN}`)."""

    link: Patterns = Field(description="`a->b`, `a<->b` or a node; `*` and `?` in names; or a list of these")

    def select(self, fabric: Fabric) -> IntArray:
        """Ids of the links meant, rising.

        Raises:
            InputError: a pattern that means none.
        """
        chosen = np.zeros(fabric.links, dtype=np.bool_)
        for pattern in (self.link,) if isinstance(self.link, str) else self.link:
            meant = _matching(fabric, pattern)
            if not meant.any():
                raise InputError("a pattern of links that are there", repr(pattern), "link", _known(fabric))
            chosen |= meant
        return np.flatnonzero(chosen)


def _matching(fabric: Fabric, pattern: str) -> NDArray[np.bool_]:
    parts = _ARROWS.fullmatch(pattern)
    if parts is None:
        nodes = _named(fabric.node_names, pattern)
        return np.asarray(nodes[fabric.tail] | nodes[fabric.head])
    a, b = (_named(fabric.node_names, parts[end]) for end in ("tail", "head"))
    meant = a[fabric.tail] & b[fabric.head]
    if parts["arrow"] == "<->":
        meant |= b[fabric.tail] & a[fabric.head]
    if parts["number"] is not None:
        numbered = [name.endswith(f"#{parts['number']}") for name in fabric.link_names]
        meant &= np.array(numbered) if int(parts["number"]) else ~_further(fabric)
    return np.asarray(meant)


def _further(fabric: Fabric) -> NDArray[np.bool_]:
    """Parallel links behind the first."""
    return np.array(["#" in name for name in fabric.link_names])


def _named(names: Sequence[str], pattern: str) -> NDArray[np.bool_]:
    if not set("*?[") & set(pattern):
        return np.fromiter((name == pattern for name in names), np.bool_, len(names))
    match = re.compile(translate(pattern)).match
    return np.fromiter((match(name) is not None for name in names), np.bool_, len(names))


def _known(fabric: Fabric) -> str:
    names = fabric.link_names
    return f"links here: {', '.join(names[:4])}" + (f" ... {names[-1]}" if len(names) > 4 else "")


def hosts_named(fabric: Fabric, patterns: Patterns) -> IntArray:
    """Numbers of the hosts whose names match, rising.

    Raises:
        InputError: a pattern that matches none.
    """
    names = [fabric.node_names[hub] for hub in fabric.hosts.tolist()]
    chosen = np.zeros(len(names), dtype=np.bool_)
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        meant = _named(names, pattern)
        if not meant.any():
            known = f"hosts here: {', '.join(names[:4])}" + (f" ... {names[-1]}" if len(names) > 4 else "")
            raise InputError("a pattern of hosts that are there", repr(pattern), "", known)
        chosen |= meant
    return np.flatnonzero(chosen)
