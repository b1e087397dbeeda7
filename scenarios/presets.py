"""The papers' names of methods: each a method of `simulator.strategies` with some of its fields given.

`strategy: {kind: easgd_rr}` is `{kind: easgd, discipline: round_robin, packed: false}`; keys beside `kind`
come on top, and a graph in the file goes before the preset's. Numbers are the paper's where papers.md has
one, else ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from simulator.yaml_source import Node

__all__ = ["PRESETS", "Preset", "expanded"]


@dataclass(frozen=True)
class Preset:
    """A method under a paper's name.

    Attributes:
        summary: what it is.
        source: which paper, by its number in papers.md.
        strategy: keys of `training.strategy`.
        gossip: of `training.gossip`, where the file has none.
    """

    summary: str
    source: str
    strategy: dict[str, Any]
    gossip: dict[str, Any] = field(default_factory=dict)


_ELASTIC = "You, Buluc and Demmel, SC17 (paper 12)"
_GOSSIP = "Jin et al., 2016 (paper 7)"
_LARGE = "Zhang et al., ICASSP 2020 (paper 6)"
_SERVER = "papers 5 and 8"

PRESETS: dict[str, Preset] = {
    "data_parallel": Preset("all-reduce beside the backward pass", "paper 10", {"kind": "sync_sgd"}),
    "large_batch_sync": Preset(
        "hierarchical all-reduce beside the backward pass; linear scaling and warm-up are the scenario's",
        "Goyal et al., 2017 (paper 3)",
        {"kind": "sync_sgd", "collective": "hierarchical"},
    ),
    "bgd_sync": Preset(
        "one all-reduce after the backward pass", "paper 15", {"kind": "sync_sgd", "bucket_bytes": "1 TB"}
    ),
    "backup_workers": Preset(
        "synchronous, without the slowest gradient", "Chen et al., 2016", {"kind": "sync_sgd", "backup": 1}
    ),
    "bsp": Preset("a server, bulk synchronous", _SERVER, {"kind": "parameter_server", "bound": 0}),
    "ssp": Preset("a server, three pushes apart at most", _SERVER, {"kind": "parameter_server", "bound": 3}),
    "asp": Preset("a server, asynchronous", _SERVER, {"kind": "parameter_server", "bound": "none"}),
    "gpu_asgd": Preset(
        "a server that gets the change of 20 local steps",
        "Paine et al., 2013 (paper 5)",
        {"kind": "parameter_server", "bound": "none", "n_sync": 20},
    ),
    "async_msgd": Preset(
        "a server, asynchronous; the momentum is the optimiser's",
        _ELASTIC,
        {"kind": "parameter_server", "bound": "none"},
    ),
    "post_local_sgd": Preset(
        "synchronous for 1000 steps, then 16 local steps an average",
        "Lin et al., ICLR 2020 (paper 11)",
        {"kind": "local_sgd", "h": 16, "start_step": 1000},
    ),
    "hetero_local_sgd": Preset(
        "local steps in proportion to speed: 32 on GPUs, one on CPUs",
        "Lim et al., 2025 (paper 1)",
        {"kind": "local_sgd", "h_by_class": {"gpu": 32, "cpu": 1}},
    ),
    "model_avg": Preset("the mean of the models every 20 steps", "paper 14", {"kind": "local_sgd", "h": 20}),
    "elastic_avg": Preset(
        "the mean of the models every mega-batch of 100 steps", "paper 2", {"kind": "local_sgd", "h": 100}
    ),
    "linear_avg": Preset(
        "the mean of the models every block of 32 samples", "paper 21", {"kind": "local_sgd", "h": 32}
    ),
    "easgd_rr": Preset(
        "the original elastic averaging: in turn, a message a layer",
        _ELASTIC,
        {"kind": "easgd", "discipline": "round_robin", "packed": False},
    ),
    "easgd_async": Preset(
        "elastic averaging, first come first served", _ELASTIC, {"kind": "easgd", "discipline": "fcfs"}
    ),
    "measgd_async": Preset(
        "the same with momentum 0.9", _ELASTIC, {"kind": "easgd", "discipline": "fcfs", "momentum": 0.9}
    ),
    "easgd_hogwild": Preset(
        "elastic averaging without the master's lock", _ELASTIC, {"kind": "easgd", "discipline": "lock_free"}
    ),
    "easgd_sync1": Preset("in lock step, over a tree", _ELASTIC, {"kind": "easgd", "sync_stage": 1}),
    "easgd_sync2": Preset(
        "in lock step, the centre at a worker", _ELASTIC, {"kind": "easgd", "sync_stage": 2}
    ),
    "easgd_sync3": Preset("and beside the gradient", _ELASTIC, {"kind": "easgd", "sync_stage": 3}),
    "dpsgd_ring": Preset("D-PSGD on a fixed ring", _LARGE, {"kind": "dpsgd"}, {"graph": "ring"}),
    "dpsgd_random": Preset(
        "D-PSGD on a ring in a new order each step", _LARGE, {"kind": "dpsgd"}, {"graph": "random_ring"}
    ),
    "dpsgd_delay1": Preset(
        "D-PSGD that mixes beside the gradient", _LARGE, {"kind": "dpsgd", "delay": 1}, {"graph": "ring"}
    ),
    "dsgdm": Preset(
        "D-PSGD; the momentum is the optimiser's", "paper 20", {"kind": "dpsgd"}, {"graph": "ring"}
    ),
    "adpsgd": Preset(
        "AD-PSGD with a random partner", "papers 6 and 18", {"kind": "ad_psgd"}, {"graph": "random_matching"}
    ),
    "gossip_pull": Preset(
        "fetch a random worker's model, take the mean", _GOSSIP, {"kind": "gossip"}, {"graph": "complete"}
    ),
    "gossip_push": Preset(
        "send the model to a random worker, who takes the mean",
        _GOSSIP,
        {"kind": "gossip", "direction": "push"},
        {"graph": "complete"},
    ),
    "gt": Preset("gradient tracking on a ring", "paper 20", {"kind": "gradient_tracking"}, {"graph": "ring"}),
}
"""By the names of papers.md 23, for the methods that are there."""


def expanded(node: Node) -> Node:
    """A scenario with what its preset stands for, every value at the place of the preset's name."""
    training = node.get("training")
    strategy = training.get("strategy") if training is not None else None
    kind = strategy.get("kind") if strategy is not None else None
    if training is None or strategy is None or kind is None or not isinstance(kind.content, str):
        return node
    preset = PRESETS.get(kind.content)
    if preset is None:
        return node
    given = {key: value for key, value in strategy.content.items() if key != "kind"}
    filled = {**_planted(preset.strategy, kind).content, **given}
    parts = {**training.content, "strategy": Node(filled, strategy.at, strategy.key)}
    if preset.gossip:
        parts.setdefault("gossip", _planted(preset.gossip, kind))
    content = {**node.content, "training": Node(parts, training.at, training.key)}
    return Node(content, node.at, node.key)


def _planted(value: Any, at: Node) -> Node:
    """Plain data as nodes that stand at one place."""
    if isinstance(value, dict):
        return Node({key: _planted(item, at) for key, item in value.items()}, at.at, at.key)
    return Node(value, at.at, at.key)
