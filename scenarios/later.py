"""Methods that the scenario format knows and this release does not execute: they load, `run` refuses."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, cast

from pydantic import ConfigDict, Field, JsonValue, model_validator

from simulator.strategies import KINDS, Strategy

_KEYS = {
    "adaptive_sgd": (),
    "cpu_training": ("fusion", "layout", "dtype", "numa"),
    "crossbow_sma": (),
    "d2": (),
    "diloco": ("h", "outer"),
    "easgd": ("discipline", "momentum", "sync_stage", "packed"),
    "gear": (),
    "gossip": ("direction",),
    "gradient_tracking": (),
    "hogbatch": ("adaptive",),
    "hogwild": (),
    "lasgd": (),
    "oscars": (),
    "palsgd": (),
    "parallel": ("dp", "mp", "planner"),
    "prague": ("generator", "group", "slack"),
    "qg": ("inner", "nesterov"),
    "sdca": ("variant",),
    "sgp": (),
    "slowmo": ("h", "outer"),
    "symsgd": (),
}
LATER = {kind: keys for kind, keys in _KEYS.items() if kind not in KINDS}
"""Methods of the format that no file of `simulator.strategies` implements, with the keys known of them."""


class LaterMethod(Strategy):
    """A method of a later release: its keys are known, their values are not looked at."""

    model_config = ConfigDict(extra="allow")

    is_later: ClassVar[bool] = True
    kind: str = Field(json_schema_extra={"enum": cast("list[JsonValue]", list(LATER))})

    @model_validator(mode="after")
    def _known_keys(self) -> Self:
        for key in self.model_extra or {}:
            if key not in LATER[self.kind]:
                known = ", ".join(LATER[self.kind]) or "no keys"
                raise ValueError(f"found the key {key!r}, expected those of {self.kind}: {known}")
        return self

    def worker(self, w: Any) -> NoReturn:
        """Never called: `run` refuses the scenario."""
        raise TypeError(f"{self.kind} is not part of this release")
