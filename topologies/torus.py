"""Grids of any number of axes, joined at the ends or open."""

from __future__ import annotations

from math import isqrt, prod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from topologies.grid import lay_grid
from topologies.links import Impossible
from topologies.regular import MOST_HOSTS, Regular, Site
from topologies.routing import Between, Routing


class Torus(Regular):
    r"""Hosts at the points of a d_1 x d_2 x ... grid, cabled to their neighbours along each axis; no switch.

        h0 --- h1 --- h2 --(to h0)      3 x 3, joined
        |      |      |
        h3 --- h4 --- h5
        |      |      |
        h6 --- h7 --- h8
        (to h0 ...)

    Host number = row-major index: the last axis runs first. Cables: n a joined axis of three points or more,
    n / 2 an axis of two, n (d - 1) / d an open one. With cables of bandwidth B, longest axis d (even,
    joined): bisection 2 n B / d, diameter sum of floor(d_i / 2). `shortest` is dimension order; `ecmp` begins
    with the axis that the hash says.

    Attributes:
        dims: points of each axis; by default the most nearly square two.
        hosts: their product; may be left out where `dims` stands.
        wrap: whether the axes are joined at their ends: one answer, or one for each axis. A mesh: `false`.

    >>> torus = Torus(dims=(4, 4, 4), link={"bandwidth": "50 GB/s", "latency": "1 us"})
    >>> torus.host_count, torus.build().links == 2 * 3 * 64
    (64, True)
    """

    kind: Literal["torus"] = "torus"
    routing: Routing = "shortest"
    hosts: int | None = Field(default=None, ge=1, le=MOST_HOSTS)
    dims: tuple[Annotated[int, Field(ge=1, le=MOST_HOSTS)], ...] | None = Field(
        default=None, min_length=1, max_length=16
    )
    wrap: bool | tuple[bool, ...] = True

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if prod(self.sides) > MOST_HOSTS:
            raise Impossible(f"{prod(self.sides):,} hosts", f"at most {MOST_HOSTS:,}", at=("dims",))
        if self.hosts is not None and prod(self.sides) != self.hosts:
            raise Impossible(
                f"hosts: {self.hosts}", f"the product of dims, {prod(self.sides)}", at=("hosts",)
            )
        if isinstance(self.wrap, tuple) and len(self.wrap) != len(self.sides):
            raise Impossible(
                f"{len(self.wrap)} entries", f"one for each of {len(self.sides)} axes", at=("wrap",)
            )
        return self

    @property
    def sides(self) -> tuple[int, ...]:
        """Points of each axis, in force."""
        if self.dims is not None:
            return self.dims
        if self.hosts is None:
            raise Impossible("neither `hosts` nor `dims`", "one of the two")
        short = next(side for side in range(isqrt(self.hosts), 0, -1) if self.hosts % side == 0)
        return (short, self.hosts // short)

    @property
    def host_count(self) -> int:
        """Number of hosts."""
        return prod(self.sides)

    def lay(self, site: Site) -> Between:
        """The grid."""
        wrap = self.wrap if isinstance(self.wrap, tuple) else (self.wrap,) * len(self.sides)
        return lay_grid(site, self.sides, wrap, self.link, self.routing)
