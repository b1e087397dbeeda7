"""Training methods, one file a method. A new one: its file, its import and its place in the union here."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simulator.strategies.ad_psgd import ADPSGD
from simulator.strategies.base import Strategy
from simulator.strategies.d2 import D2
from simulator.strategies.diloco import DiLoCo
from simulator.strategies.dpsgd import DPSGD
from simulator.strategies.easgd import EASGD
from simulator.strategies.gossip import Gossip
from simulator.strategies.gradient_tracking import GradientTracking
from simulator.strategies.local_sgd import LocalSGD
from simulator.strategies.parameter_server import ParameterServer
from simulator.strategies.sgp import SGP
from simulator.strategies.slowmo import SlowMo
from simulator.strategies.sync_sgd import SyncSGD

__all__ = [
    "ADPSGD",
    "D2",
    "DPSGD",
    "EASGD",
    "KINDS",
    "SGP",
    "DiLoCo",
    "Gossip",
    "GradientTracking",
    "LocalSGD",
    "ParameterServer",
    "SlowMo",
    "Strategies",
    "Strategy",
    "SyncSGD",
]

Strategies = Annotated[
    ADPSGD
    | D2
    | DiLoCo
    | DPSGD
    | EASGD
    | Gossip
    | GradientTracking
    | LocalSGD
    | ParameterServer
    | SGP
    | SlowMo
    | SyncSGD,
    Field(discriminator="kind"),
]
"""Any shipped method, by its `kind`."""

KINDS: dict[str, type[Strategy]] = {
    "ad_psgd": ADPSGD,
    "d2": D2,
    "diloco": DiLoCo,
    "dpsgd": DPSGD,
    "easgd": EASGD,
    "gossip": Gossip,
    "gradient_tracking": GradientTracking,
    "local_sgd": LocalSGD,
    "parameter_server": ParameterServer,
    "sgp": SGP,
    "slowmo": SlowMo,
    "sync_sgd": SyncSGD,
}
"""Shipped methods by name."""
