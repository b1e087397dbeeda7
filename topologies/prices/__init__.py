"""Price lists of network parts: YAML files with a source and a date for each part.

A list gives prices at some speeds. In between they are interpolated (logarithms over logarithms), so that
networks of one cost can be found; below the least speed its price holds, above the highest several of those
are bought.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, StringConstraints, model_validator

from simulator.errors import InputError
from simulator.fabric import FloatArray
from simulator.spec import Spec
from simulator.units import Bandwidth
from simulator.validation import did_you_mean, validate
from simulator.yaml_source import read

DEFAULT = "ethernet_2026"
"""The list that is used where none is named."""
PARTS = ("switch_port", "nic", "copper", "optics", "leased", "hub")
"""What a list prices, by key."""

_FOLDER = Path(__file__).parent

Text = Annotated[str, StringConstraints(min_length=1)]
Date = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Sourced(Spec):
    """Where a price comes from.

    Attributes:
        source: a publication, an offer, or `memory`.
        date: when it was true, or written down.
    """

    source: Text
    date: Date


class BySpeed(Sourced):
    """A price by line rate.

    Attributes:
        usd: (line rate, price) at rising rates, prices not falling.
    """

    usd: tuple[tuple[Bandwidth, PositiveFloat], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        for (slower, cheaper), (faster, dearer) in pairwise(self.usd):
            if slower >= faster or cheaper > dearer:
                raise ValueError("found speeds or prices out of order, expected both rising")
        return self

    def at(self, rate: FloatArray) -> FloatArray:
        """USD for line rates in bytes/s, any shape."""
        speeds, prices = np.array(self.usd, dtype=float).T
        bundle = np.maximum(rate / speeds[-1], 1.0)
        clipped = np.clip(rate, speeds[0], speeds[-1])
        return np.asarray(np.exp(np.interp(np.log(clipped), np.log(speeds), np.log(prices))) * bundle)


class ByRate(Sourced):
    """A price in proportion to the line rate: leased lines, for all the time that they are wanted."""

    usd_per_gbit_s: NonNegativeFloat

    def at(self, rate: FloatArray) -> FloatArray:
        """USD for line rates in bytes/s, any shape."""
        return np.asarray(rate * 8 / 1e9 * self.usd_per_gbit_s)


class ByDevice(Sourced):
    """What joins the devices of a server."""

    usd: NonNegativeFloat = 0.0
    usd_per_device: NonNegativeFloat = 0.0


class Prices(Spec):
    """A price list.

    Attributes:
        name: of the list.
        switch_port, nic: one port.
        copper, optics: one cable, with what is plugged in at both ends.
        leased: a line that is too long to own.
        hub: by kind of host.
    """

    name: Text
    switch_port: BySpeed
    nic: BySpeed
    copper: BySpeed
    optics: BySpeed
    leased: ByRate
    hub: dict[Literal["pcie_tree", "nvlink_mesh", "nvswitch", "cpu_only"], ByDevice]


class PriceFile(Spec):
    """A price file: the version of the format, and the list."""

    paceline: int
    prices: Prices


def names() -> tuple[str, ...]:
    """Of the shipped lists."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load(name: str) -> Prices:
    """A shipped list, or a FILE.yaml.

    Raises:
        InputError: there is none, or what is wrong in the file.
    """
    if name.endswith((".yaml", ".yml")):
        return read_prices(Path(name))
    if name not in names():
        hint = did_you_mean(name, names()) or f"shipped: {', '.join(names())}"
        raise InputError("FILE.yaml or a shipped price list", repr(name), "prices", hint)
    return _shipped(name)


@lru_cache(maxsize=16)
def _shipped(name: str) -> Prices:
    return read_prices(path_of(name))


def path_of(name: str) -> Path:
    """The file of a shipped list."""
    return _FOLDER / f"{name}.yaml"


def read_prices(path: Path) -> Prices:
    """The list in a file.

    Raises:
        InputError: what is wrong, with file, line and column.
    """
    return validate(PriceFile, read(path)[0]).prices
