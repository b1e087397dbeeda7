"""Made-up results for the tests of what is done with results (`synthetic.py`, loaded by its path)."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scenarios.store import Run, place, write_run, write_study


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).with_name("synthetic.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["synthetic"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def made(synthetic: ModuleType) -> Callable[..., Run]:
    """A run in memory; `time` is the time to the target, None if never."""

    def make(variant: str = "sync", seed: int = 1, *, learns: bool = True, **options: Any) -> Run:
        result = synthetic.make_result(variant=variant, seed=seed, learns=learns, **options)
        return Run(synthetic.make_scenario(variant, seed, learns), {}, result.summary, None, result)

    return make


VARIANTS = (("sync", 1.0, True, 10.0), ("local", 0.9, True, 9.0), ("gossip", 0.6, False, 4.5))


@pytest.fixture
def study_at(synthetic: ModuleType) -> Callable[..., list[Run]]:
    """Writes a study of three variants to a directory, as `paceline run` does."""

    def write(root: Path, seeds: tuple[int, ...] = (1, 2), learns: bool = True, **options: Any) -> list[Run]:
        runs = []
        for variant, speed, wait, time in VARIANTS:
            for seed in seeds:
                result = synthetic.make_result(
                    speed=speed, wait=wait, seed=seed, variant=variant, learns=learns,
                    target_s=time * (1 + 0.01 * seed * (-1) ** seed), **options,
                )  # fmt: skip
                document = synthetic.make_scenario(variant, seed, learns)
                runs.append(write_run(place(root, variant, seed), document, result))
        write_study(root, runs)
        return runs

    return write
