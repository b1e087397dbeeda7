"""Traces a torch module on the meta device into operations: no memory, no arithmetic, any size of model.

The module runs forward and backward at two batch sizes. What grows with the batch is an amount of each
sample, the rest is fixed (weights). FLOP are torch's own count (matrix products and convolutions); traffic
is what each kernel reads and writes at least once. Kernels of the backward pass are assigned to the layer
whose forward pass made them.

Left out: fusion (attention is traced as separate products and a softmax, elementwise kernels one by one),
rereading of what does not fit a cache, and layouts. The efficiencies of a profile have to make up for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import conv_flop_count, flop_registry

from calibration.operations.losses import cross_entropy
from simulator.operations import Operation, Operations

LOSS = "loss"  # layer of what happens outside of the module
SIZES = (2, 4)  # batches traced

_FREE = (
    "empty",
    "new_empty",
    "empty_like",
    "empty_strided",
    "new_empty_strided",
)  # allocations without traffic
_LOOK_UPS = (torch.ops.aten.embedding, torch.ops.aten._embedding_bag)
_KINDS = (  # the first fragment found in an operator's name decides
    ("conv", "convolution"),
    ("embedding", "embedding"),
    ("norm", "normalisation"),
    ("softmax", "softmax"),
    ("pool", "pooling"),
    ("attention", "matmul"),
    ("mm", "matmul"),
    ("dot", "matmul"),
    ("linear", "matmul"),
)


@dataclass
class _Row:
    """One kernel at one batch size: amounts of the whole batch."""

    layer: str
    backward: bool
    kind: str
    flop: float
    values: float
    kept: float = 0.0


@dataclass
class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every kernel and the layer it belongs to."""

    rows: list[_Row] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def layer(self) -> tuple[str, bool]:
        """The layer of the kernel under way, and whether it is in its backward pass."""
        node: Any = torch._C._current_autograd_node()
        if node is not None:
            return _metadata(node).get("layer", LOSS), True
        return self.stack[-1] if self.stack else LOSS, False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if not func.is_view and func._schema.name.removeprefix("aten::") not in _FREE:
            layer, backward = self.layer()
            kind = _kind(func._schema.name)
            kernels = _kernels(func, args, kwargs, out)
            flop = _flop(func, args, kwargs or {}, out)
            for numbers in kernels:
                self.rows.append(_Row(layer, backward, kind, flop, numbers))
        return out


def _flop(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> float:
    """FLOP of each kernel of an operator.

    Either gradient of a convolution takes as many as its forward pass. (Torch's own count of them forgets
    groups.)
    """
    if func.overloadpacket is torch.ops.aten.convolution_backward:
        by_output, inputs, weights = args[:3]
        return float(conv_flop_count(inputs.shape, weights.shape, by_output.shape, transposed=args[7]))
    count = flop_registry.get(func.overloadpacket)
    return float(count(*args, **kwargs, out_val=out)) if count else 0.0


def _kernels(func: Any, args: tuple[Any, ...], kwargs: Any, out: Any) -> list[float]:
    """How many numbers each kernel of an operator reads and writes.

    One kernel each, but for the backward pass of a convolution: one gives the gradient by its input, one
    that by its weights; both read the gradient of the output. Embeddings read the rows looked up only.
    """
    if func.overloadpacket is torch.ops.aten.convolution_backward and None not in out[:2]:
        by_output, inputs, weights = args[:3]
        return [_total(by_output, weights, out[0]), _total(by_output, inputs, out[1], out[2])]
    if func.overloadpacket in _LOOK_UPS:
        table, symbols = args[:2]
        return [_total(args[1:], kwargs, out) + symbols.numel() * table.shape[1]]
    return [_total(args, kwargs, out)]


def _total(*values: Any) -> float:
    return sum(map(_numbers, tree_leaves(values)))


def _metadata(node: Any) -> dict[str, Any]:
    """Free entries of a node of the backward graph (torch declares the property as a method)."""
    entries: dict[str, Any] = node.metadata
    return entries


def _numbers(leaf: Any) -> float:
    """Numbers behind a tensor; an expanded one has fewer than elements."""
    if not isinstance(leaf, Tensor):
        return 0.0
    return float(min(leaf.numel(), leaf.untyped_storage().nbytes() // leaf.element_size()))


def _kind(name: str) -> str:
    operator = name.removeprefix("aten::")
    return next((kind for fragment, kind in _KINDS if fragment in operator), "elementwise")


def _nodes(values: Any) -> set[Any]:
    """Nodes of the backward graph that made these tensors."""
    return {leaf.grad_fn for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.grad_fn}


def _tag(outputs: Any, before: set[Any], layer: str) -> None:
    """Mark the nodes between `before` and `outputs` that belong to nobody yet."""
    pending, seen = list(_nodes(outputs)), set(before)
    while pending:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            _metadata(node).setdefault("layer", layer)
            pending += [below for below, _ in node.next_functions]


def _hooks(model: nn.Module, recorder: _Recorder) -> Iterator[Any]:
    """Hooks that keep the stack of modules under way; the root is called `model`."""
    before: list[set[Any]] = []
    for path, module in model.named_modules():
        layer = path or "model"

        def enter(module: nn.Module, args: Any, kwargs: Any, layer: str = layer) -> None:
            recorder.stack.append(layer)
            before.append(_nodes((args, kwargs)))

        def leave(module: nn.Module, args: Any, outputs: Any, layer: str = layer) -> None:
            recorder.stack.pop()
            _tag(outputs, before.pop(), layer)

        yield module.register_forward_pre_hook(enter, with_kwargs=True)
        yield module.register_forward_hook(leave)


def _record(model: nn.Module, inputs: Tensor, loss: Callable[[Any], Tensor]) -> _Recorder:
    """One forward and backward pass."""
    recorder = _Recorder()
    owned = {parameter.untyped_storage()._cdata for parameter in model.parameters()}

    def keep(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        if storage._cdata not in owned and recorder.rows:
            owned.add(storage._cdata)
            recorder.rows[-1].kept += storage.nbytes() // saved.element_size()
        return saved

    model.zero_grad(set_to_none=True)
    with ExitStack() as stack:
        for hook in _hooks(model, recorder):
            stack.callback(hook.remove)
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved))
        stack.enter_context(recorder)
        loss(model(inputs)).backward()  # type: ignore[no-untyped-call]
    return recorder


def trace(
    build: Callable[[], nn.Module],
    sample: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
    loss: Callable[[Any], Tensor] = cross_entropy,
) -> Operations:
    """The operations of one gradient of a module.

    Args:
        build: makes the module; called on the meta device.
        sample: shape of one sample, without the batch.
        dtype: of the samples (`torch.long` for tokens).
        loss: from the module's output to a scalar.

    Raises:
        ValueError: the module runs other kernels at another batch size, or some parameters in none.
    """
    with torch.device("meta"):
        model = build().train()
        few, many = (_record(model, torch.empty(size, *sample, dtype=dtype), loss) for size in SIZES)
    if [(row.layer, row.kind) for row in few.rows] != [(row.layer, row.kind) for row in many.rows]:
        raise ValueError("the module runs other operations at another batch size")
    parameters = _parameters(model)
    layers = list(dict.fromkeys(row.layer for row in few.rows))
    if idle := [layer for layer, count in parameters.items() if count and layer not in layers]:
        raise ValueError(f"layer {idle[0]!r} has parameters and runs no kernel")
    number = {layer: place for place, layer in enumerate(layers)}
    rows = [_per_sample(number[a.layer], a, b) for a, b in zip(few.rows, many.rows, strict=True)]
    return Operations.of(layers, [parameters.get(layer, 0) for layer in layers], rows)


def _per_sample(layer: int, few: _Row, many: _Row) -> Operation:
    """Amounts of each sample, and the fixed rest of the traffic."""
    more = SIZES[1] - SIZES[0]
    values = (many.values - few.values) / more
    return Operation(
        layer=layer,
        backward=few.backward,
        kind=few.kind,
        flop=(many.flop - few.flop) / more,
        values=values,
        fixed=few.values - SIZES[0] * values,
        kept=(many.kept - few.kept) / more,
    )


def _parameters(model: nn.Module) -> dict[str, int]:
    """Trained parameters of each module itself; shared ones belong to the first that has them."""
    seen: set[int] = set()
    counts = {}
    for path, module in model.named_modules():
        own = [p for p in module.parameters(recurse=False) if p.requires_grad and id(p) not in seen]
        seen.update(map(id, own))
        counts[path or "model"] = sum(parameter.numel() for parameter in own)
    return counts
