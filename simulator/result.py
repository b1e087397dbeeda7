"""What a run hands over: a summary, and tables as columns of numpy arrays.

Times are seconds, sizes bytes. Tables are plain dicts `column -> array`, all arrays of a table of one length;
`scenarios.tables` makes data frames and files of them. Columns of text that repeat are `Coded`, so that a
million spans cost no Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: The columns of each table, in order. More may follow behind them, none may lack.
COLUMNS: dict[str, tuple[str, ...]] = {
    "steps": (
        "worker", "step", "start_s", "end_s", "compute_s", "communication_s", "waiting_s", "bubble_s",
        "other_s", "bytes_sent", "staleness", "samples",
    ),
    "spans": ("worker", "kind", "name", "start_s", "end_s", "step", "size_bytes", "peer", "hidden"),
    "workers": (
        "worker", "host", "device", "compute_fraction", "exposed_communication_fraction", "waiting_fraction",
        "bubble_fraction", "input_fraction", "checkpoint_fraction", "restart_fraction", "idle_fraction",
        "bytes_sent", "steps", "samples",
    ),
    "curve": ("time_s", "samples", "steps", "epoch", "split", "model", "loss", "accuracy"),
    "links": (
        "link", "src", "dst", "bandwidth_bytes_per_s", "latency_s", "bytes", "busy_s", "utilisation",
        "utilisation_peak",
    ),
    "transfers": ("name", "begin_s", "end_s", "bytes", "src", "dst"),
    "loads": ("transfer", "link", "bytes"),
}  # fmt: skip

#: Kinds of a span, in the order of the break-down.
SPAN_KINDS = (
    "compute", "communication", "waiting", "bubble", "input", "checkpoint", "restart", "idle",
)  # fmt: skip

#: The shares of worker time in `summary` and in `workers`; they sum to one. One a span kind, in their order.
FRACTIONS = (
    "compute_fraction", "exposed_communication_fraction", "waiting_fraction", "bubble_fraction",
    "input_fraction", "checkpoint_fraction", "restart_fraction", "idle_fraction",
)  # fmt: skip


@dataclass(frozen=True)
class Coded:
    """A column of text that repeats: row i reads `names[codes[i]]`.

    Attributes:
        codes: index into `names`, shape (rows,), any integer type.
        names: the texts.
    """

    codes: NDArray[np.integer[Any]]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Coded:
        """Code a sequence of texts, names in order of first appearance.

        >>> Coded.of(["ring", "tree", "ring"])
        Coded(codes=array([0, 1, 0], dtype=int32), names=('ring', 'tree'))
        """
        known: dict[str, int] = {}
        codes = [known.setdefault(text, len(known)) for text in texts]
        return cls(np.asarray(codes, dtype=np.int32), tuple(known))

    def texts(self) -> NDArray[np.object_]:
        """The column written out, shape (rows,), dtype object."""
        return np.asarray(self.names, dtype=object)[self.codes] if len(self) else np.empty(0, dtype=object)


Column: TypeAlias = "NDArray[Any] | Coded"
Columns: TypeAlias = Mapping[str, Column]


@dataclass
class Result:
    """One finished run (one variant, one seed).

    A table is None where the record level leaves it out. Columns of text are `Coded` or numpy arrays of
    strings; a number that is not there is NaN (float columns) or -1 (integers: `step`, `peer`, `src`, `dst`).

    Attributes:
        summary: keys as in ARCHITECTURE.md, Formats; plain Python numbers, None for null (no NaN, no
            numpy scalars).
        workers: one row a worker, in rank order. `host` is text, `device` the device's index within its host.
        links: one row a directed link, in link order (row number = link id). `src`, `dst` are node names.
            `bytes` are all; `background_bytes` and `others_bytes` those of them that are not the run's own.
            `utilisation` is of what the link could have carried, schedules of its bandwidth included.
        curve: one row an evaluation, split and model, in order of time. None in a timing-only run.
        steps: one row a worker's finished local step. `step` counts from 1.
        spans: one row a span of a worker's time, any order. `peer` is a worker's rank, or the number of
            workers + s for server s, or -1. Overlapped communication has `hidden` true.
        transfers: one row a network activity (message or bundle), for the timeline. `src`, `dst` count like
            `peer` and are -1 where more than two take part. A row's number is its id in `loads`.
        loads: what each transfer puts on links: one row a (transfer, link id) with the bytes that the link
            carried for it, at an even rate between the transfer's begin and end. May be None where
            `transfers` is not.
        facts: what does not belong to the simulated outcome and goes to `manifest.json` (engine used, events,
            engine seconds, price dates ...); not covered by the law of equal results.
    """

    summary: dict[str, Any]
    workers: Columns | None = None
    links: Columns | None = None
    curve: Columns | None = None
    steps: Columns | None = None
    spans: Columns | None = None
    transfers: Columns | None = None
    loads: Columns | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in COLUMNS:
            table = getattr(self, name)
            if table is not None:
                check_table(name, table)

    def tables(self) -> dict[str, Columns]:
        """The tables that are there, by name."""
        return {name: table for name in COLUMNS if (table := getattr(self, name)) is not None}


def check_table(name: str, table: Columns) -> None:
    """See that a table has its columns, all of one length.

    Raises:
        ValueError: a column lacks, or lengths differ.
    """
    missing = [column for column in COLUMNS[name] if column not in table]
    if missing:
        raise ValueError(f"table {name} lacks {', '.join(missing)}")
    lengths = {len(column) for column in table.values()}
    if len(lengths) > 1:
        raise ValueError(f"columns of {name} differ in length: {sorted(lengths)}")
