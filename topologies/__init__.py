"""Physical networks and gossip graphs: builders, routing, placement, metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from topologies.dragonfly import Dragonfly
from topologies.fat_tree import FatTree
from topologies.full_mesh import FullMesh
from topologies.graph import Graph
from topologies.hypercube import Hypercube
from topologies.jellyfish import Jellyfish
from topologies.leaf_spine import LeafSpine
from topologies.placement import Placement
from topologies.rail_optimised import RailOptimised
from topologies.ring import Ring
from topologies.sites import Sites
from topologies.star import Star
from topologies.torus import Torus

CATALOGUE = Path(__file__).parent / "catalogue"
"""Folder of the shipped topology files."""

AnyTopology = (
    Star
    | Ring
    | FullMesh
    | Torus
    | Hypercube
    | LeafSpine
    | FatTree
    | RailOptimised
    | Dragonfly
    | Jellyfish
    | Sites
    | Graph
)
Topology = Annotated[AnyTopology, Field(discriminator="kind")]
"""Any topology, by its `kind`."""

__all__ = [
    "CATALOGUE",
    "AnyTopology",
    "Dragonfly",
    "FatTree",
    "FullMesh",
    "Graph",
    "Hypercube",
    "Jellyfish",
    "LeafSpine",
    "Placement",
    "RailOptimised",
    "Ring",
    "Sites",
    "Star",
    "Topology",
    "Torus",
    "names",
]


def names() -> list[str]:
    """Shipped topologies, by the name a scenario gives as `cluster`."""
    return sorted(path.stem for path in CATALOGUE.glob("*.yaml"))
