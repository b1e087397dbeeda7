"""A run that was ended goes on where it was kept when it is ordered again; changed data are another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.run import Order, input_hashes, ready, run_study
from simulator.maths.resumable import Checkpoint

SCENARIO = """
paceline: 1
name: long
cluster: {topology: {kind: star, hosts: 3, link: {bandwidth: 10 Gbit/s, latency: 5 us}}}
problem: {kind: digits_mlp, hidden: [8]}
training: {strategy: {kind: ad_psgd}, gossip: {graph: complete}, optimizer: {kind: momentum, lr: 0.1}}
evaluate: {every: 1 ms}
stop: {steps: 30}
variants:
  ad: {}
  sync: {training.strategy: {kind: sync_sgd}}
"""


@pytest.mark.parametrize("variants", [("ad",), ("sync",), ()])
def test_an_ended_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variants: tuple[str, ...]
) -> None:
    file = tmp_path / "long.yaml"
    file.write_text(SCENARIO)
    study = ready(file)
    undisturbed = run_study(study, Order(tmp_path / "a", report=False, engine="process"), variants)
    after_event, taken_up = Checkpoint.after_event, []

    def dying(self: Checkpoint, events: int) -> None:
        skipped = self.tape.skipping
        after_event(self, events)
        if skipped and not self.tape.skipping:
            taken_up.append(events)
        if not skipped and events == 70:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "after_event", dying)
    order = Order(tmp_path / "new" / "b", report=False, checkpoint_every=0.0, engine="process")
    with pytest.raises(KeyboardInterrupt):
        run_study(study, order, variants)
    assert len([*tmp_path.rglob(".*.checkpoint.npz")]) == 1
    monkeypatch.setattr(Checkpoint, "after_event", lambda *args: dying_no_more(taken_up, after_event, *args))
    again = run_study(study, order, variants)
    assert taken_up == [70]
    assert [run.summary for run in again.runs] == [run.summary for run in undisturbed.runs]
    assert not [*tmp_path.rglob("*.npz*")]


def dying_no_more(taken_up: list[int], after_event: Any, checkpoint: Checkpoint, events: int) -> None:
    skipped = checkpoint.tape.skipping
    after_event(checkpoint, events)
    if skipped and not checkpoint.tape.skipping:
        taken_up.append(events)


def test_data_are_part_of_what_was_run(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "images").write_bytes(b"1")
    document = {
        "problem": {"file": str(tmp_path / "a"), "test_file": str(tmp_path / "b")},
        "others": [{"folder": str(tmp_path / "folder")}],
        "name": str(tmp_path / "c"),
    }
    before = input_hashes(document)
    assert sorted(Path(name).name for name in before) == ["a", "b", "images"]
    (tmp_path / "folder" / "images").write_bytes(b"2")
    after = input_hashes(document)
    assert [name for name in before if before[name] != after[name]] == [str(tmp_path / "folder" / "images")]
