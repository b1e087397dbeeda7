"""Where the workers sit: columns by rank, and which of them a `where:` means."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, NonNegativeInt, Tag, model_serializer, model_validator

from simulator.errors import InputError
from simulator.fabric import Fabric, FloatArray, IntArray
from simulator.spec import Spec
from simulator.streams import Draws

_KEYS = ("worker", "workers", "host", "class", "share")


class Some(Spec):
    """Some of the workers: exactly one of the keys."""

    worker: NonNegativeInt | None = Field(None, description="one rank")
    workers: tuple[NonNegativeInt, ...] | None = Field(None, min_length=1, description="these ranks")
    host: str | None = Field(None, description="all on the host of this name")
    device_class: str | None = Field(None, alias="class", description="all on devices of this class")
    share: float | None = Field(None, gt=0, le=1, description="this share of all workers, drawn by the seed")

    @model_validator(mode="before")
    @classmethod
    def _one_key(cls, data: Any) -> Any:
        if isinstance(data, dict) and "link" in data:
            raise ValueError("found 'link', expected workers: this key slows workers, not links")
        if isinstance(data, dict) and sum(value is not None for value in data.values()) != 1:
            raise ValueError(f"found the keys {sorted(map(str, data))}, expected one of {', '.join(_KEYS)}")
        return data

    @model_serializer
    def _only_the_key(self) -> dict[str, Any]:
        names = {"device_class": "class"}
        return {names.get(key, key): value for key, value in self.__dict__.items() if value is not None}


Where = Annotated[
    Annotated[Literal["all"], Tag("all")] | Annotated[Some, Tag("some")],
    Field(description="`all`, or which workers"),
    Discriminator(lambda value: "all" if isinstance(value, str) else "some"),
]
"""Some workers: `all`, `{worker: 3}`, `{workers: [0, 1]}`, `{host: h0}`, `{class: NAME}`, `{share: 0.1}`."""


@dataclass(frozen=True)
class Workers:
    """The workers by rank.

    Attributes:
        node: node of the fabric each sits on, shape (n,).
        host: its host's number, shape (n,).
        device: index of its device within the host, shape (n,).
        kind: its device class.
        profile: name of its device profile.
        host_names: of all hosts, by number.
    """

    node: IntArray
    host: IntArray
    device: IntArray
    kind: tuple[str, ...]
    profile: tuple[str, ...]
    host_names: tuple[str, ...]

    @classmethod
    def of(cls, fabric: Fabric, places: IntArray) -> Workers:
        """Worker r on device `places[r]` of the fabric."""
        devices = [fabric.devices[place] for place in places.tolist()]
        return cls(
            node=np.array([device.node for device in devices], dtype=np.int64),
            host=np.array([device.host for device in devices], dtype=np.int64),
            device=np.array([device.index for device in devices], dtype=np.int64),
            kind=tuple(device.kind for device in devices),
            profile=tuple(device.profile for device in devices),
            host_names=tuple(fabric.node_names[hub] for hub in fabric.hosts.tolist()),
        )

    @classmethod
    def alike(cls, n: int, profile: str = "", kind: str = "gpu") -> Workers:
        """Workers 0 .. n-1 on hosts of their own, all of one kind: for studies without a network."""
        rank = np.arange(n, dtype=np.int64)
        names = tuple(f"h{r}" for r in range(n))
        return cls(rank, rank, np.zeros(n, dtype=np.int64), (kind,) * n, (profile,) * n, names)

    def __len__(self) -> int:
        return len(self.node)

    def select(self, where: Literal["all"] | Some, draws: Draws, purpose: str) -> IntArray:
        """Ranks that `where` means, rising.

        A `share` takes round(share n) workers, at least one: those with the least of the numbers that
        `purpose` draws for each rank.

        Raises:
            InputError: no such worker, host or class.
        """
        if isinstance(where, str):
            return np.arange(len(self), dtype=np.int64)
        if where.worker is not None:
            return self._ranks((where.worker,))
        if where.workers is not None:
            return self._ranks(where.workers)
        if where.host is not None:
            return self._on_host(where.host)
        if where.device_class is not None:
            return self._of_class(where.device_class)
        assert where.share is not None
        return self._share(where.share, draws.block(purpose, 0, len(self)))

    def _ranks(self, ranks: tuple[int, ...]) -> IntArray:
        worst = max(ranks)
        if worst >= len(self):
            raise InputError(f"a worker from 0 to {len(self) - 1}", f"worker {worst}", field="where")
        return np.unique(np.array(ranks, dtype=np.int64))

    def _on_host(self, name: str) -> IntArray:
        names = self.host_names
        if name not in names:
            close = get_close_matches(name, names, n=1)
            known = ", ".join(names[:4]) + (f", ... {names[-1]}" if len(names) > 4 else "")
            hint = f"did you mean {close[0]!r}?" if close else ""
            raise InputError(f"a host: {known}", repr(name), "where.host", hint)
        ranks = np.flatnonzero(self.host == names.index(name))
        if not len(ranks):
            raise InputError("a host with workers", f"{name!r} with no workers on it", "where.host")
        return ranks

    def _of_class(self, name: str) -> IntArray:
        chosen = np.array([kind == name for kind in self.kind], dtype=bool)
        if not chosen.any():
            raise InputError(
                f"a class of device: {', '.join(sorted(set(self.kind)))}", repr(name), "where.class"
            )
        return np.flatnonzero(chosen)

    def _share(self, share: float, u: FloatArray) -> IntArray:
        count = max(1, round(share * len(self)))
        return np.sort(np.argsort(u, kind="stable")[:count])
