"""How functions of the engine are compiled with numba. Imported only where compiled code is about to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import cgutils
from numba.extending import intrinsic

_null: Any = cgutils.get_null_value
P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call; the machine code is kept on disk between runs, where that is possible."""
    try:
        made = numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba finds no directory that it can write to
        made = numba.njit(error_model="numpy")(function)
    return cast(Callable[P, R], made)


@intrinsic
def _borrowed(typing_context: Any, array: Any) -> Any:
    """In compiled code: the same array without its reference count.

    Counting is an atomic operation whenever an array is handed on, and took half of the solver's time. Who
    calls the compiled function holds the array as long as it runs.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_of = context.make_array(signature.args[0])
        fields = array_of(context, builder, arguments[0])
        fields.meminfo = _null(fields.meminfo.type)
        fields.parent = _null(fields.parent.type)
        return fields._getvalue()

    return array(array), generate


borrowed: Any = _borrowed
