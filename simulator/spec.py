"""The base of everything that a scenario file can name: frozen, strict about unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """A part of a scenario. Its fields are its YAML keys; an unknown key is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
