"""What a scenario is: one variant with all its defaults. Joins the specs that live beside what they describe.

The keys are those of the YAML files. A file may hold several scenarios (`variants`, `seeds`, `sweep`), and
more beside them (`claims`, `plan`): `study.py`, `planning.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    Discriminator,
    Field,
    PositiveFloat,
    PositiveInt,
    SerializeAsAny,
    Tag,
    model_validator,
)

from scenarios.header import Name, Seed, VariantName, Version
from scenarios.later import LATER, LaterMethod
from scenarios.own_code import OwnProblem, OwnStrategy
from scenarios.planning import Layout, StepWorkload
from simulator import problems, strategies
from simulator.background import BackgroundFlows
from simulator.collectives.libraries import LIBRARIES
from simulator.compression import CompressionSpec
from simulator.devices import Profile
from simulator.link_schedule import LinkChange
from simulator.network import Fidelity, SendEnds
from simulator.optimizers import OptimizerSpec, Sgd
from simulator.schedules import Constant, ScheduleSpec
from simulator.spec import Spec
from simulator.stragglers import StragglerSpec
from simulator.units import PositiveSeconds, Quantity, Seconds
from simulator.workload import WorkloadSpec
from topologies import Placement, Topology
from topologies.cost import PriceFactors
from topologies.gossip import Gossip
from topologies.prices import Prices


def _owner(value: Any) -> str:
    """`own` for a class of the user's, `package.module:Class`; `later` for a later release's method."""
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", "")
    if isinstance(kind, str) and kind in LATER:
        return "later"
    return "own" if isinstance(kind, str) and ":" in kind else "shipped"


if TYPE_CHECKING:
    Strategy = strategies.Strategy
    Problem = problems.Problem
else:
    Strategy = Annotated[
        Annotated[SerializeAsAny[strategies.Strategies], Tag("shipped")]
        | Annotated[SerializeAsAny[OwnStrategy], Tag("own")]
        | Annotated[LaterMethod, Tag("later")],
        Discriminator(_owner),
    ]
    Problem = Annotated[
        Annotated[SerializeAsAny[problems.ProblemSpec], Tag("shipped")]
        | Annotated[SerializeAsAny[OwnProblem], Tag("own")],
        Discriminator(_owner),
    ]


def _scale(value: Any) -> str:
    """`step` for the keys of a large model's step, `training` for a batch a worker."""
    keys = value if isinstance(value, dict) else getattr(value, "model_fields_set", ())
    return "step" if {"seq", "micro_batch", "global_batch"} & set(keys) else "training"


Workload = Annotated[
    Annotated[WorkloadSpec, Tag("training")] | Annotated[StepWorkload, Tag("step")], Discriminator(_scale)
]


class Cluster(Spec):
    """The machines, the network between them, and where on them the workers run."""

    topology: Topology
    placement: Placement = Placement()
    prices: Prices | str | None = Field(None, description="a shipped price list, FILE.yaml, or the list")
    price_factors: PriceFactors = Field(PriceFactors(), description="what prices are multiplied by")
    budget_usd: PositiveFloat | None = Field(
        None, description="make all cables faster or slower by one factor, so that the network costs this"
    )


class Training(Spec):
    """How it is trained."""

    strategy: Strategy
    optimizer: OptimizerSpec = Sgd(lr=0.1)
    schedule: ScheduleSpec = Constant()
    gossip: Gossip | None = Field(None, description="who may exchange with whom; for decentralised methods")
    compression: CompressionSpec | None = Field(None, description="of what workers send")


class Collective(Spec):
    """Which algorithm each collective operation takes."""

    library: Literal["none", "gloo", "nccl"] = Field(
        "none", description="whose algorithms operations take that are not named"
    )
    all_reduce: Literal[
        "ring",
        "halving_doubling",
        "tree",
        "double_tree",
        "hierarchical",
        "hierarchical_3",
        "direct",
        "gloo_ring",
        "nccl_ring",
        "in_switch",
        "auto",
        "nccl_auto",
    ] = "ring"
    reduce_scatter: Literal["ring", "gloo_ring"] = "ring"
    all_gather: Literal["ring", "gloo_ring"] = "ring"
    broadcast: Literal["binomial", "gloo_broadcast"] = "binomial"
    reduce: Literal["binomial", "gloo_ring"] = "binomial"
    all_to_all: Literal["direct", "gloo_direct"] = "direct"
    exchange: Literal["pairs", "gloo_pairs"] = "pairs"
    barrier: Literal["dissemination", "gloo_dissemination"] = "dissemination"
    tree_chunks: int = Field(16, ge=1, le=4096, description="chunks of the buffer in a tree")
    hosts_per_group: PositiveInt = Field(
        1, description="hosts in a group of the middle level, hierarchical_3"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_library(cls, given: Any) -> Any:
        """The library's algorithms, where none is named."""
        if isinstance(given, dict) and isinstance(given.get("library"), str):
            return {**LIBRARIES.get(given["library"], {}), **given}
        return given


class NetworkSpec(Spec):
    """How the network is simulated."""

    fidelity: Fidelity = "bundles"
    collective: Collective = Collective()
    send_ends: SendEnds = Field("left", description="a rank sends on when its bytes have left, or arrived")
    message_overhead: Seconds = Field(Quantity(0.0), description="host time for each message")
    schedule: tuple[LinkChange, ...] = Field((), description="bandwidths over time")
    background: tuple[BackgroundFlows, ...] = Field((), description="traffic of strangers between hosts")


class Other(Spec):
    """Another training on the same network, on devices that no job before it has; timed only."""

    name: Name = "other"
    placement: Placement = Placement()
    workload: WorkloadSpec
    training: Training
    collective: Collective = Collective()
    stragglers: tuple[StragglerSpec, ...] = ()
    begin: Seconds = Field(Quantity(0.0), description="when its workers begin")
    steps: PositiveInt | None = Field(None, description="of each worker; by default until the run ends")


class Evaluate(Spec):
    """When the loss is measured; free of simulated time. Without a problem nothing is measured."""

    every: PositiveSeconds | None = Field(
        None, description="simulated; by default at start and end, with a target 200 times within `stop.time`"
    )
    split: Literal["test", "train"] = "test"


class Target(Spec):
    """A quality to reach: all that is given must be met by one evaluation."""

    loss: float | None = Field(None, description="at most")
    accuracy: float | None = Field(None, gt=0, le=1, description="at least")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.loss is None and self.accuracy is None:
            raise ValueError("found nothing to reach, expected `loss` or `accuracy`")
        return self


EPOCHS_FOR_TARGET = 1000
"""Epochs after which a run ends that has nothing but a target to end it: the target may never be met."""


class Stop(Spec):
    """When a run ends: what comes first."""

    time: PositiveSeconds | None = Field(None, description="simulated")
    steps: PositiveInt | None = Field(None, description="local steps of each worker")
    samples: PositiveInt | None = Field(None, description="of all workers together")
    epochs: PositiveFloat | None = Field(None, description="passes through the problem's training samples")
    target: Target | None = None

    @model_validator(mode="before")
    @classmethod
    def _bounded(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = {key for key, value in data.items() if value is not None}
        if given == {"target"}:
            return {**data, "epochs": EPOCHS_FOR_TARGET}
        if not given:
            raise ValueError("found nothing that ends a run, expected time, steps, samples, epochs or target")
        return data


class MathsSpec(Spec):
    """How the real maths is computed."""

    dtype: Literal["float32", "float64"] = "float32"


class Scenario(Spec):
    """One variant of a scenario file, whole: what a run is made from.

    `seed` is that of one run; a file's `seeds` make a run each.
    """

    paceline: Version = 1
    name: Name = "scenario"
    variant: VariantName = "default"
    seed: Seed = 1
    cluster: Cluster
    profiles: dict[str, Profile] = Field({}, description="own device profiles, by the name devices give")
    workload: Workload | None = Field(None, description="what a step costs; by default the problem's model")
    problem: Problem | None = Field(None, description="what is really computed; by default nothing")
    training: Training | None = None
    layout: Layout | None = Field(None, description="how a large model is laid over the workers")
    network: NetworkSpec = NetworkSpec()
    stragglers: tuple[StragglerSpec, ...] = ()
    others: tuple[Other, ...] = Field((), description="other jobs on the same network")
    evaluate: Evaluate = Evaluate()
    stop: Stop
    maths: MathsSpec = MathsSpec()
