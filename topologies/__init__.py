"""Physical networks and gossip graphs: builders, routing, placement, metrics."""

from __future__ import annotations

from pathlib import Path

from topologies.placement import Placement
from topologies.star import Star

CATALOGUE = Path(__file__).parent / "catalogue"
"""Folder of the shipped topology files."""

Topology = Star
"""Any topology, by its `kind`."""

__all__ = ["CATALOGUE", "Placement", "Star", "Topology", "names"]


def names() -> list[str]:
    """Shipped topologies, by the name a scenario gives as `cluster`."""
    return sorted(path.stem for path in CATALOGUE.glob("*.yaml"))
