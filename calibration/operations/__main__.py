"""Traces the shipped models and writes their lists of operations anew: `python -m calibration.operations`."""

from __future__ import annotations

from pathlib import Path

import torch

from calibration.operations import MODELS, Model, models, proxies, to_csv
from calibration.operations.trace import trace
from simulator.operations import Operations


def traced(name: str, model: Model) -> Operations:
    """A fresh trace of a shipped model."""
    build = getattr({"models": models, "proxies": proxies}[model.module], name)
    return trace(build, model.sample, torch.long if model.tokens else torch.float32)


def main() -> None:
    """Write one CSV file a model beside this file."""
    for name, model in MODELS.items():
        path = Path(__file__).parent / f"{name}.csv"
        path.write_text(to_csv(traced(name, model)), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
