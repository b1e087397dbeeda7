"""Large models: what a step costs, how it is laid over the workers, and plans that search among offers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from simulator.operations import Dtype
from simulator.spec import Spec
from simulator.stragglers import StragglerSpec
from simulator.units import Bandwidth, PositiveSeconds, Quantity, Seconds
from topologies.links import LinkSpec
from topologies.server import Host

Recompute = Literal["none", "selective", "full"]
Sharding = Literal["none", "zero1", "zero2", "zero3"]
Degrees = Annotated[tuple[PositiveInt, ...], Field(min_length=1)]


class StepWorkload(Spec):
    """Scenario key `workload` of a large model: what one step over all workers costs."""

    model: str = Field(description="name of a shipped model")
    seq: PositiveInt = Field(description="tokens of a sequence")
    dtype: Dtype = "bf16"
    micro_batch: PositiveInt = Field(1, description="sequences at a time in a pipeline")
    global_batch: PositiveInt = Field(description="sequences a step")


class Overlap(Spec):
    """Which communication runs beside computation."""

    dp: bool = True
    tp: bool = False
    pp: bool = True


class Layout(Spec):
    """How a large model is laid over the workers."""

    tp: PositiveInt = Field(1, description="tensor parallel ranks")
    pp: PositiveInt = Field(1, description="pipeline stages")
    vpp: PositiveInt = Field(1, description="virtual stages a rank")
    cp: PositiveInt = Field(1, description="context parallel ranks")
    ep: PositiveInt = Field(1, description="expert parallel ranks")
    dp: PositiveInt | Literal["auto"] = Field(
        "auto", description="data parallel ranks; auto: all that are left"
    )
    schedule: Literal["1f1b", "gpipe", "interleaved", "zero_bubble"] = "1f1b"
    sequence_parallel: bool = False
    dp_sharding: Sharding = "none"
    recompute: Recompute = "none"
    overlap: Overlap = Overlap()


class PlanModel(Spec):
    """What is to be trained."""

    config: str = Field(description="name of a shipped model, or a config.json")
    seq: PositiveInt
    dtype: Dtype = "bf16"


class ScalingLaw(Spec):
    """loss = e + a / N^alpha + b / D^beta (Hoffmann et al., 2022)."""

    e: NonNegativeFloat
    a: PositiveFloat
    b: PositiveFloat
    alpha: PositiveFloat
    beta: PositiveFloat
    source: str


class PlanTarget(Spec):
    """A loss, and the law that says how many tokens it takes."""

    loss: PositiveFloat
    scaling_law: ScalingLaw


class GlobalBatch(Spec):
    """Sizes of the global batch to choose from."""

    sequences: Degrees


class OfferTopology(Spec):
    """The network of an offer: its hosts follow from the number of devices."""

    kind: Literal[
        "star", "ring", "full_mesh", "torus", "hypercube", "leaf_spine", "fat_tree", "rail_optimised",
        "dragonfly", "jellyfish", "sites",
    ]  # fmt: skip
    host: Host
    link: LinkSpec
    oversubscription: float = Field(1.0, ge=1)


class Offer(Spec):
    """Machines that can be had."""

    name: str = Field(min_length=1)
    profile: str = Field(description="of the device")
    count: Degrees
    usd_per_gpu_hour: NonNegativeFloat
    topology: OfferTopology


class Layouts(Spec):
    """Layouts to choose from: every combination that fits."""

    tp: Degrees = (1,)
    pp: Degrees = (1,)
    cp: Degrees = (1,)
    ep: Degrees = (1,)
    vpp: Degrees = (1,)
    micro_batch: Degrees = (1,)
    recompute: Annotated[tuple[Recompute, ...], Field(min_length=1)] = ("none",)
    dp_sharding: Annotated[tuple[Sharding, ...], Field(min_length=1)] = ("none",)


class Limits(Spec):
    """What a candidate may not exceed."""

    deadline: PositiveSeconds | None = None
    budget_usd: PositiveFloat | None = None
    memory_fraction: float = Field(0.92, gt=0, le=1, description="of a device's memory that may be used")


class Checkpoint(Spec):
    """Saving and starting again."""

    every: PositiveSeconds | Literal["auto"] = "auto"
    write_bandwidth: Bandwidth = Quantity(100e9)
    restart: Seconds = Quantity(600.0)


class Failures(Spec):
    """How often devices fail, and what that costs."""

    mttf_per_gpu: PositiveSeconds = Field(
        description="mean time to failure of one device and its share of the rest"
    )
    checkpoint: Checkpoint = Checkpoint()


class SeedRange(Spec):
    """Seeds first, first + 1, ...: `count` of them, up to `max` where an interval is not narrow enough."""

    first: NonNegativeInt = 1
    count: PositiveInt = Field(le=10_000)
    max: PositiveInt | None = Field(None, le=10_000)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.max is not None and self.max < self.count:
            raise ValueError(f"found max: {self.max}, expected at least count: {self.count}")
        return self

    @property
    def all(self) -> tuple[int, ...]:
        """The `count` seeds."""
        return tuple(range(self.first, self.first + self.count))


class Search(Spec):
    """How candidates are ranked and checked."""

    fidelity: Literal["planning", "closed_form", "bundles", "flows"] = "planning"
    verify_top: NonNegativeInt = 5
    seeds: SeedRange = SeedRange(first=1, count=3)


class Plan(Spec):
    """How many of which machines train a model within a time or a budget."""

    model: PlanModel
    tokens: PositiveFloat | None = None
    target: PlanTarget | None = None
    global_batch: GlobalBatch
    offers: tuple[Offer, ...] = Field(min_length=1)
    layouts: Layouts = Layouts()
    limits: Limits = Limits()
    failures: Failures | None = None
    stragglers: tuple[StragglerSpec, ...] = ()
    rank_by: Literal["cost_usd", "days", "energy_kwh"] = "cost_usd"
    search: Search = Search()

    @model_validator(mode="after")
    def _one_goal(self) -> Self:
        if (self.tokens is None) == (self.target is None):
            raise ValueError("found both or neither of tokens and target, expected one of them")
        return self
