"""A torch module of the user's: measured without computing, started by a seed, and as a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from simulator.fabric import FloatArray
from simulator.maths.looped import ONE_CLASS, Judge, Looped
from simulator.maths.task import DTYPES
from simulator.problems.base import Layer
from simulator.problems.digits import Classified

Build = Callable[[], nn.Module]


class Measured(NamedTuple):
    """What a module costs."""

    layers: tuple[Layer, ...]


def _checked(module: nn.Module) -> nn.Module:
    """The module.

    Raises:
        ValueError: a gradient of it would depend on more than the model and the samples.
    """
    for path, part in module.named_modules():
        where = f"{path or 'the module'} ({type(part).__name__})"
        if isinstance(part, _BatchNorm):
            raise ValueError(
                f"{where} normalises over batches, and its averages would be no part of the model: "
                "take nn.GroupNorm or nn.LayerNorm"
            )
        if isinstance(part, _DropoutNd) and part.p > 0:
            raise ValueError(f"{where} drops out at random: a run must be the same each time; take p=0")
    if not any(True for _ in module.parameters()):
        raise ValueError("the module has no parameters")
    if idle := [name for name, weight in module.named_parameters() if not weight.requires_grad]:
        raise ValueError(f"parameter {idle[0]!r} does not require a gradient: make it a buffer")
    return module


def measured(build: Build, sample: np.ndarray) -> Measured:
    """Parameters, FLOP and traffic of each part of a module, for one sample, on the meta device.

    Args:
        build: makes the module.
        sample: shape (1, ...).
    """
    with torch.device("meta"):
        module = _checked(_built(build))
        kind = torch.float32 if sample.dtype.kind == "f" else torch.int64
        inputs = torch.empty(sample.shape, dtype=kind)
        moved: dict[str, float] = {}
        hooks = [_watch(path, part, moved) for path, part in module.named_modules()]
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            module(inputs)
        for hook in hooks:
            hook.remove()
    flop = {path: float(sum(counts.values())) for path, counts in counter.get_flop_counts().items()}
    return Measured(tuple(_layers(module, moved, flop)))


def _watch(path: str, part: nn.Module, moved: dict[str, float]) -> Any:
    def count(part: nn.Module, inputs: Any, outputs: Any) -> None:
        numbers = sum(t.numel() for t in tree_leaves((inputs, outputs)) if isinstance(t, Tensor))
        moved[path] = moved.get(path, 0.0) + numbers

    return part.register_forward_hook(count)


def _layers(module: nn.Module, moved: dict[str, float], flop: dict[str, float]) -> list[Layer]:
    seen: set[int] = set()
    layers = []
    for path, part in module.named_modules():
        own = [weight for weight in part.parameters(recurse=False) if id(weight) not in seen]
        seen.update(map(id, own))
        if not own:
            continue
        full = ".".join(filter(None, (type(module).__name__, path)))
        inner = sum(flop.get(f"{full}.{name}", 0.0) for name, _ in part.named_children())
        count = sum(weight.numel() for weight in own)
        layers.append(
            Layer(path or "module", _kind(part), count, flop.get(full, 0.0) - inner, moved.get(path, 0.0))
        )
    return layers


def _kind(part: nn.Module) -> str:
    name = type(part).__name__
    for fragment, kind in (
        ("Conv", "convolution"),
        ("Norm", "normalisation"),
        ("Embedding", "embedding"),
    ):
        if fragment in name:
            return kind
    return "matmul"


def _built(build: Build, seed: int = 0) -> nn.Module:
    """A module whose constructor draws by a seed, and nobody else's numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(seed)
        return build()


def started(build: Build, seed: int) -> FloatArray:
    """The parameters of a new module, end to end, shape (d,)."""
    module = _built(build, seed)
    flat = torch.cat([weight.detach().flatten() for weight in module.parameters()])
    return np.asarray(flat.double().numpy())


def task(
    build: Build,
    data: Classified,
    loss: Callable[[Tensor, Tensor], Tensor],
    classifies: bool,
    dtype: str,
) -> Looped:
    """Gradients of the module, whatever parameters it is given."""
    template = _checked(_built(build)).to(DTYPES[dtype])
    names = [name for name, _ in template.named_parameters()]

    def outputs(tensors: Sequence[Tensor], inputs: Tensor) -> Tensor:
        out: Tensor = functional_call(template, dict(zip(names, tensors, strict=True)), (inputs,))
        return out

    judge = ONE_CLASS._replace(loss=loss) if classifies else Judge(loss, None, len)
    return Looped([tuple(w.shape) for w in template.parameters()], outputs, data, dtype, judge=judge)
