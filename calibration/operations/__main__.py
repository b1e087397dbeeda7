"""Traces shipped models, writes their operations anew: `python -m calibration.operations [NAME...]`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import torch
from torch import nn

from calibration.operations import MODELS, Model, losses, to_csv
from calibration.operations.trace import trace
from simulator.operations import Operations


def built(name: str, model: Model) -> nn.Module:
    """A shipped model as a torch module, on the default device."""
    module: nn.Module = getattr(import_module(f"calibration.operations.{model.module}"), name)()
    return module


def traced(name: str, model: Model) -> Operations:
    """A fresh trace of a shipped model."""
    dtype = torch.long if model.tokens else torch.float32
    return trace(lambda: built(name, model), model.sample, dtype, getattr(losses, model.loss))


def main() -> None:
    """Write one CSV file a model beside this file."""
    for name in sys.argv[1:] or MODELS:
        path = Path(__file__).parent / f"{name}.csv"
        path.write_text(to_csv(traced(name, MODELS[name])), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
