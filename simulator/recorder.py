"""The recorder: spans and steps of all workers, their sums, and the digest, as the run goes.

Spans may be recorded ahead of the clock (a gradient's end is known when it begins; a cohort's clocks run
ahead). A span counts as finished once its end is settled, that is at or before the time up to which the run
is known to go on. At the close, spans under way are cut.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.clock import Clock
from simulator.digest import Words, span_words
from simulator.fabric import FloatArray, IntArray
from simulator.result import SPAN_KINDS, Coded, Columns
from simulator.step_times import StepTimes

RecordLevel = Literal["summary", "steps", "all"]
COMPUTE, COMMUNICATION, WAITING, BUBBLE, INPUT, CHECKPOINT, RESTART, IDLE = range(8)
_HIDDEN = 8  # added to the kind of a span that overlaps compute

SPAN = np.dtype(
    [
        ("start", "f8"), ("end", "f8"), ("size", "f8"),
        ("worker", "i4"), ("step", "i4"), ("peer", "i4"), ("name", "i2"), ("kind", "i1"), ("hidden", "?"),
    ]
)  # fmt: skip
STEP = np.dtype(
    [
        ("start", "f8"), ("end", "f8"), ("compute", "f8"), ("communication", "f8"), ("waiting", "f8"),
        ("bubble", "f8"), ("bytes_sent", "f8"), ("staleness", "f8"),
        ("worker", "i4"), ("step", "i4"), ("samples", "i4"), ("wasted", "i4"),
    ]
)  # fmt: skip
Rows = NDArray[np.void]


class _Buffer:
    """Packed rows that grow by doubling: writing one costs 0.2 us, an array view nothing."""

    def __init__(self, dtype: np.dtype[np.void], pack: str) -> None:
        self._dtype = dtype
        self._struct = struct.Struct(pack)
        assert self._struct.size == dtype.itemsize
        self._bytes = bytearray(dtype.itemsize * 4096)
        self.count = 0
        self.room = 4096

    def append(self, *values: float) -> None:
        """Add one row, fields in the order of the type."""
        if self.count == self.room:
            self._bytes.extend(bytes(len(self._bytes)))
            self.room *= 2
        self._struct.pack_into(self._bytes, self.count * self._dtype.itemsize, *values)
        self.count += 1

    def rows(self) -> Rows:
        """A copy of the rows."""
        return np.frombuffer(self._bytes, self._dtype, self.count).copy()

    def keep(self, rows: Rows) -> None:
        """Go on with these rows only."""
        self._bytes[: rows.nbytes] = rows.tobytes()
        self.count = len(rows)


@dataclass
class _Spans:
    """One span of every worker (a cohort's): start and end are vectors, the rest is shared."""

    kind: int
    hidden: bool
    name: int
    step: int
    start: FloatArray
    end: FloatArray
    size: FloatArray


@dataclass
class _Steps:
    """One step of every worker (a cohort's)."""

    step: int
    columns: dict[str, FloatArray]
    samples: int
    wasted: IntArray | None = None


@dataclass
class Recorder:
    """Takes in spans and steps; gives sums, tables and the digest.

    Args:
        workers: how many. clock: says what time it is; what ends later may still be undone. level:
        `summary` keeps sums only, `steps` also a row a step, `all` also a row a span. ahead: nothing will
        ever cut the run short, so spans may be settled before the clock reaches their end. limit: seconds;
        the run is cut there at the latest.
    """

    workers: int
    clock: Clock
    level: RecordLevel = "all"
    ahead: bool = False
    limit: float = np.inf
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = self.workers
        self._codes: dict[str, int] = {}
        self._spans = _Buffer(SPAN, "<dddiiihb?")
        self._steps = _Buffer(STEP, "<ddddddddiiii")
        self._flush_at = 32_768
        self._flush_steps_at = 32_768
        self._span_blocks: list[_Spans] = []
        self._step_blocks: list[_Steps] = []
        self._kept_spans: list[Rows | _Spans] = []
        self._kept_steps: list[Rows | _Steps] = []
        self.words: Words = np.zeros(n, dtype=np.uint64)
        self.seconds: FloatArray = np.zeros((len(SPAN_KINDS), n))
        self.bytes_sent: FloatArray = np.zeros(n)
        self.steps_done: IntArray = np.zeros(n, dtype=np.int64)
        self.samples: IntArray = np.zeros(n, dtype=np.int64)
        self.wasted = 0
        self.staleness_sum, self.staleness_count, self.staleness_max = 0.0, 0, 0.0
        self.last_end = 0.0
        self.step_times = StepTimes()

    def name(self, text: str) -> int:
        """The number that stands for a span's name."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.names)
            self.names.append(text)
        return code

    # one worker at a time

    def span(
        self,
        worker: int,
        kind: int,
        start: float,
        end: float,
        step: int,
        name: int,
        size: float = 0.0,
        peer: int = -1,
        hidden: bool = False,
    ) -> None:
        """Record one span of one worker; of one without length only the bytes count."""
        if end > start or size:
            self._spans.append(start, end, size, worker, step, peer, name, kind, hidden)
            if self._spans.count >= self._flush_at:
                self._settle_spans()

    def step(self, *row: float) -> None:
        """Record one finished step of one worker: the fields of `STEP` in their order."""
        self._steps.append(*row)
        if self._steps.count >= self._flush_steps_at:
            self._settle_steps()

    # all workers at once

    def spans(
        self,
        kind: int,
        start: FloatArray,
        end: FloatArray,
        step: int,
        name: int,
        size: FloatArray | None = None,
        hidden: bool = False,
    ) -> None:
        """Record one span of every worker, shape (workers,) each."""
        nothing = np.zeros(self.workers) if size is None else size
        block = _Spans(kind, hidden, name, step, start, end, nothing)
        if self._settled(block.end):
            self._absorb_block(block)
        else:
            self._span_blocks.append(block)

    def steps(
        self, step: int, columns: dict[str, FloatArray], samples: int, wasted: IntArray | None = None
    ) -> None:
        """Record one finished step of every worker; columns: the float fields of `STEP`, shape (workers,)."""
        block = _Steps(step, columns, samples, wasted)
        if self._settled(columns["end"]):
            self._absorb_steps_block(block)
        else:
            self._step_blocks.append(block)

    def _settled(self, end: FloatArray) -> bool:
        return bool(end.max() <= (self.limit if self.ahead else self.clock.now))

    # settling

    def settle(self) -> None:
        """Take in the vectors that nothing can undo any more."""
        if self._span_blocks:
            waiting = self._span_blocks
            self._span_blocks = [b for b in waiting if not self._settled(b.end)]
            for block in waiting:
                if self._settled(block.end):
                    self._absorb_block(block)
        if self._step_blocks:
            steps = self._step_blocks
            self._step_blocks = [b for b in steps if not self._settled(b.columns["end"])]
            for step in steps:
                if self._settled(step.columns["end"]):
                    self._absorb_steps_block(step)

    def _settle_spans(self) -> None:
        rows = self._spans.rows()
        settled = rows["end"] <= self.clock.now
        self._absorb(rows[settled])
        self._spans.keep(rows[~settled])
        self._flush_at = max(32_768, 2 * self._spans.count)

    def _settle_steps(self) -> None:
        rows = self._steps.rows()
        settled = rows["end"] <= self.clock.now
        self._absorb_steps(rows[settled])
        self._steps.keep(rows[~settled])
        self._flush_steps_at = max(32_768, 2 * self._steps.count)

    def _absorb(self, rows: Rows) -> None:
        if not len(rows):
            return
        code = rows["kind"] + _HIDDEN * rows["hidden"]
        columns = [np.ascontiguousarray(rows[c]) for c in ("start", "end", "size")]
        np.add.at(self.words, rows["worker"], span_words(code, *columns))
        self._sum(rows)
        sent = rows["kind"] == COMMUNICATION
        np.add.at(self.bytes_sent, rows["worker"][sent], rows["size"][sent])
        self.last_end = max(self.last_end, float(rows["end"].max()))
        if self.level == "all":
            self._kept_spans.append(rows)

    def _sum(self, rows: Rows) -> None:
        seen = rows[~rows["hidden"]]
        np.add.at(self.seconds, (seen["kind"], seen["worker"]), seen["end"] - seen["start"])

    def _absorb_block(self, block: _Spans) -> None:
        code = block.kind + _HIDDEN * block.hidden
        self.words += span_words(code, block.start, block.end, block.size)
        if not block.hidden:
            self.seconds[block.kind] += block.end - block.start
        if block.kind == COMMUNICATION:
            self.bytes_sent += block.size
        if (block.end > block.start).any():
            self.last_end = max(self.last_end, float(block.end.max()))
        if self.level == "all":
            self._kept_spans.append(block)

    def _absorb_steps(self, rows: Rows) -> None:
        if not len(rows):
            return
        np.add.at(self.steps_done, rows["worker"], 1)
        np.add.at(self.samples, rows["worker"], rows["samples"])
        self.wasted += int(rows["wasted"].sum())
        stale = rows["staleness"][~np.isnan(rows["staleness"])]
        if len(stale):
            self.staleness_sum += float(stale.sum())
            self.staleness_count += len(stale)
            self.staleness_max = max(self.staleness_max, float(stale.max()))
        later = rows[rows["step"] > 1]
        if len(later):
            self.step_times.add(later["end"] - later["start"])
        if self.level != "summary":
            self._kept_steps.append(rows)

    def _absorb_steps_block(self, block: _Steps) -> None:
        self.steps_done += 1
        self.samples += block.samples
        if block.wasted is not None:
            self.wasted += int(block.wasted.sum())
        if block.step > 1:
            self.step_times.add(block.columns["end"] - block.columns["start"])
        if self.level != "summary":
            self._kept_steps.append(block)

    # reading as the run goes

    def counts(self) -> tuple[int, int]:
        """Steps and samples of all workers finished by now."""
        now = self.clock.now
        self.settle()
        self._settle_steps()
        steps, samples = int(self.steps_done.sum()), int(self.samples.sum())
        for block in self._step_blocks:
            done = int((block.columns["end"] <= now).sum())
            steps += done
            samples += done * block.samples
        return steps, samples

    # the end

    def close(self, cut: float) -> float:
        """End the record at `cut` (seconds); spans under way at the last finished span's end are cut there.

        Returns:
            `simulated_s`: the end of the last finished span.
        """
        span_rows = [self._spans.rows(), *(self._block_rows(b) for b in self._span_blocks)]
        step_rows = [self._steps.rows(), *(self._steps_block_rows(b) for b in self._step_blocks)]
        self._spans.keep(self._spans.rows()[:0])
        self._steps.keep(self._steps.rows()[:0])
        self._span_blocks, self._step_blocks = [], []
        for steps in step_rows:
            self._absorb_steps(steps[steps["end"] <= cut])
        open_rows = []
        for spans in span_rows:
            finished = spans["end"] <= cut
            self._absorb(spans[finished])
            open_rows.append(spans[~finished])
        self._cut(np.concatenate(open_rows))
        return self.last_end

    def _cut(self, rows: Rows) -> None:
        under_way = rows[(rows["start"] < self.last_end) & (rows["end"] > rows["start"])]
        under_way["end"] = np.minimum(under_way["end"], self.last_end)
        under_way["size"] = 0.0
        self._sum(under_way)
        if self.level == "all" and len(under_way):
            self._kept_spans.append(under_way)

    def idle(self) -> None:
        """After `close`: what is left of every worker's time it was idle.

        Raises:
            AssertionError: a worker's spans add up to more than the run.
        """
        left = self.last_end - self.seconds[:IDLE].sum(axis=0)
        assert left.min(initial=0.0) >= -1e-9 * max(self.last_end, 1e-9), "overlapping spans of one worker"
        self.seconds[IDLE] = np.where(left > 1e-12 * self.last_end, left, 0.0)  # rounding is no idleness
        if self.level == "all":
            lazy = np.flatnonzero(left > 1e-12 * self.last_end)
            rows = np.zeros(len(lazy), dtype=SPAN)
            rows["worker"], rows["kind"], rows["peer"], rows["step"] = lazy, IDLE, -1, -1
            rows["name"], rows["start"], rows["end"] = (
                self.name("idle"),
                self.last_end - left[lazy],
                self.last_end,
            )
            self._kept_spans.append(rows)

    # tables

    def _block_rows(self, block: _Spans) -> Rows:
        rows = np.zeros(self.workers, dtype=SPAN)
        rows["worker"] = np.arange(self.workers)
        rows["start"], rows["end"], rows["size"] = block.start, block.end, block.size
        rows["step"], rows["peer"], rows["name"] = block.step, -1, block.name
        rows["kind"], rows["hidden"] = block.kind, block.hidden
        return rows[(rows["end"] > rows["start"]) | (rows["size"] > 0)]

    def _steps_block_rows(self, block: _Steps) -> Rows:
        rows = np.zeros(self.workers, dtype=STEP)
        rows["worker"] = np.arange(self.workers)
        for column, values in block.columns.items():
            rows[column] = values
        rows["step"], rows["samples"] = block.step, block.samples
        if block.wasted is not None:
            rows["wasted"] = block.wasted
        return rows

    def span_table(self) -> Columns | None:
        """Spans by worker and start, columns of `result.COLUMNS`; None below level `all`."""
        if self.level != "all":
            return None
        parts = [self._block_rows(k) if isinstance(k, _Spans) else k for k in self._kept_spans]
        rows = np.concatenate(parts) if parts else np.zeros(0, dtype=SPAN)
        rows = rows[rows["end"] > rows["start"]]
        rows = rows[np.lexsort((rows["end"], rows["start"], rows["worker"]))]
        return {
            "worker": rows["worker"],
            "kind": Coded(rows["kind"], SPAN_KINDS),
            "name": Coded(rows["name"], tuple(self.names)),
            "start_s": rows["start"],
            "end_s": rows["end"],
            "step": rows["step"],
            "size_bytes": rows["size"],
            "peer": rows["peer"],
            "hidden": rows["hidden"],
        }

    def step_table(self) -> Columns | None:
        """Steps by worker and number, columns of `result.COLUMNS`; None at level `summary`."""
        if self.level == "summary":
            return None
        parts = [self._steps_block_rows(k) if isinstance(k, _Steps) else k for k in self._kept_steps]
        rows = np.concatenate(parts) if parts else np.zeros(0, dtype=STEP)
        rows = rows[np.lexsort((rows["step"], rows["worker"]))]
        table: dict[str, Any] = {"worker": rows["worker"], "step": rows["step"]}
        for column in ("start", "end", "compute", "communication", "waiting", "bubble"):
            table[f"{column}_s"] = rows[column]
        known = rows["compute"] + rows["communication"] + rows["waiting"] + rows["bubble"]
        table["other_s"] = np.maximum(rows["end"] - rows["start"] - known, 0.0)
        table["bytes_sent"], table["staleness"] = rows["bytes_sent"], rows["staleness"]
        table["samples"] = rows["samples"]
        return table
