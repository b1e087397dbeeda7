"""What a scenario file holds beside the scenario itself: seeds, claims, tuning, sweeps, plans."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from scenarios.header import Name, Seed, Version
from scenarios.planning import Plan, SeedRange
from simulator.spec import Spec


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    for index, seed in enumerate(seeds):
        if seed in seeds[:index]:
            raise ValueError(f"found {seed} twice, expected seeds that differ")
    return seeds


SeedList = Annotated[tuple[Seed, ...], Field(min_length=1, max_length=10_000), AfterValidator(_distinct)]
Seeds = SeedList | SeedRange
Date = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Values = Annotated[tuple[Any, ...], Field(min_length=1)]


class Claim(Spec):
    """A statement about the variants, as an expression of their summaries and the interval expected of it."""

    id: Name
    text: Text
    expr: Text = Field(description="of VARIANT.KEY[.SUB], numbers, + - * / ( ), min max abs log mean")
    expect: tuple[float | None, float | None] = Field(description="least and most; null: no bound")
    source: Text
    evidence: Literal["exact", "found", "reconstruction", "memory", "toy_checked"]


class Tuned(Spec):
    """Where a tuned value comes from."""

    by: str = Field(description="the sweep's file")
    key: str | tuple[str, ...]
    date: Date


class Best(Spec):
    """Which point of a sweep is best."""

    by: str = Field(description="the key to be tuned")
    metric: str = Field(description="a key of the summary")
    goal: Literal["min", "max"] = "min"
    within: tuple[str, ...] = Field((), description="`variant` or swept keys: a best for each combination")


class Sweep(Spec):
    """Many runs over lists of values."""

    variants: tuple[Name, ...] | None = Field(None, min_length=1, description="by default all of the file")
    grid: dict[str, Values] = Field({}, description="dotted key -> values: every combination")
    zip: dict[str, Values] = Field({}, description="dotted key -> values, walked side by side")
    cases: dict[Name, dict[str, Any]] = Field(
        {}, description="name -> overrides, as in variants: every point in each case; the key `case`"
    )
    seeds: Seeds | None = Field(None, description="by default the file's")
    best: Best | None = None
    record: Literal["summary", "steps", "all"] = "summary"
    impossible: Literal["error", "skip"] = Field(
        "error", description="points that cannot be, such as a hypercube of 12 hosts: wrong, or left out"
    )


class Beside(Spec):
    """The keys of a scenario file that are not part of one run."""

    paceline: Version = 1
    name: Name = "scenario"
    seeds: Seeds | None = Field(None, description="a run for each; by default the one `seed`")
    claims: tuple[Claim, ...] = ()
    tuned: Tuned | None = None
    sweep: Sweep | None = None
    plan: Plan | None = None
