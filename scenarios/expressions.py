"""Expressions of claims: `sync.step_time_s.mean / sync_even.step_time_s.mean`, read without running anything.

Names are VARIANT.KEY[.SUB] of the summaries; numbers, + - * / ( ), min max abs log mean.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

FUNCTIONS = ("abs", "log", "max", "mean", "min")

SUMMARY_KEYS = frozenset({
    "simulated_s", "steps", "steps_per_worker_min", "steps_per_worker_max", "rounds", "samples",
    "samples_costed", "samples_wasted", "samples_per_s", "step_time_s", "compute_fraction",
    "exposed_communication_fraction", "waiting_fraction", "bubble_fraction", "input_fraction",
    "checkpoint_fraction", "restart_fraction", "idle_fraction", "bytes_sent", "bytes_received",
    "bytes_dropped", "bytes_in_flight", "bytes_per_link_max", "staleness_mean", "staleness_max",
    "consensus_distance", "final_loss", "final_accuracy", "final_train_loss",
    "final_accuracy_worker_mean", "time_to_target_s", "samples_to_target", "mfu", "mfu_peak_dtype",
    "cost_usd", "energy_kwh", "memory_peak_bytes", "band", "executed", "costed", "validated", "digest",
    "seed", "variant", "network_cost_usd",
})  # fmt: skip
"""Keys of `summary.json`."""

_LONGEST = 2000
_SIGNS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.UAdd, ast.USub)


def names(expression: str) -> set[tuple[str, ...]]:
    """The names in an expression, as (variant, key, ...).

    Raises:
        ValueError: it is no expression of this kind.
    """
    if len(expression) > _LONGEST:
        raise ValueError(f"found an expression of {len(expression)} characters, expected at most {_LONGEST}")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        return set(_names(tree))
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(
            f"found {expression!r}, expected an expression such as a.simulated_s / b.simulated_s"
        ) from None


def _names(node: ast.expr) -> Iterator[tuple[str, ...]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SIGNS):
        yield from _names(node.left)
        yield from _names(node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, _SIGNS):
        yield from _names(node.operand)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.Attribute):
        yield _dotted(node)
    elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        raise ValueError(
            f"found {ast.unparse(node)!r}, expected names, numbers, + - * / ( ), {' '.join(FUNCTIONS)}"
        )


def _call(node: ast.Call) -> Iterator[tuple[str, ...]]:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in FUNCTIONS or node.keywords or not node.args:
        raise ValueError(f"found {ast.unparse(node)!r}, expected one of the functions {', '.join(FUNCTIONS)}")
    for argument in node.args:
        yield from _names(argument)


def _dotted(node: ast.Attribute) -> tuple[str, ...]:
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        raise ValueError(f"found {ast.unparse(node)!r}, expected VARIANT.KEY")
    return (inner.id, *reversed(parts))
