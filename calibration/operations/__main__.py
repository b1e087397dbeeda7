"""Traces the shipped models and writes their lists of operations anew: `python -m calibration.operations`."""

from __future__ import annotations

from pathlib import Path

from calibration.operations import MODELS, models, to_csv
from calibration.operations.trace import trace


def main() -> None:
    """Write one CSV file a model beside this file."""
    for name, model in MODELS.items():
        path = Path(__file__).parent / f"{name}.csv"
        path.write_text(to_csv(trace(getattr(models, name), model.sample)), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
