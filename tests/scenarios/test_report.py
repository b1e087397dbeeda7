"""The report: verdict, both sample counts, one offline file; names out of files stay text."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scenarios import store
from scenarios.report import report, timeline, waiting, write_report
from scenarios.report.gather import curve_of, gather
from scenarios.report.verdict import judge
from scenarios.store import Run
from simulator.errors import InputError
from simulator.result import Coded

Made = Callable[..., Run]
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)


class Page(HTMLParser):
    """Elements of a page, its text, and the content of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self._inside != "style":
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def figures(self) -> dict[str, Any]:
        return {
            str(attributes["id"]).removesuffix("-data"): json.loads(text)
            for attributes, text in self.scripts
            if attributes.get("type") == "application/json"
        }


def values(packed: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])


def test_the_verdict_names_winner_factor_and_interval(made: Made) -> None:
    runs = [made("sync", seed, target_s=10.0 + 0.1 * seed) for seed in (1, 2, 3)]
    runs += [made("gossip", seed, target_s=5.0 + 0.04 * seed) for seed in (1, 2, 3)]
    verdict = judge(gather(runs))
    assert verdict.winner == "gossip"
    assert verdict.headline == (
        "gossip reaches accuracy 0.95 first, after 5.08 s: 2.01 times sooner than sync, the next "
        "(95 % interval 2.00 to 2.02, 3 seeds)."
    )


def test_one_seed_gives_a_factor_and_says_that_there_is_no_interval(made: Made) -> None:
    verdict = judge(
        gather([made("sync", target_s=9.0), made("local", target_s=6.0), made("gossip", target_s=4.5)])
    )
    assert verdict.headline == (
        "gossip reaches accuracy 0.95 first, after 4.5 s: 1.33 times sooner than local, the next "
        "(one seed, so no interval)."
    )
    assert verdict.rest == "The others: local 6 s and sync 9 s."


def test_noise_has_no_winner(made: Made) -> None:
    runs = [made("sync", seed, target_s=time) for seed, time in ((1, 10.0), (2, 12.0), (3, 11.0))]
    runs += [made("local", seed, target_s=time) for seed, time in ((1, 11.5), (2, 10.5), (3, 10.8))]
    verdict = judge(gather(runs))
    assert verdict.winner is None
    assert verdict.headline.startswith("No clear winner: local (10.9 s) and sync (11 s)")


def test_equal_variants_share_the_first_place(made: Made) -> None:
    runs = [made(name, target_s=time) for name, time in (("a", 4.0), ("b", 4.02), ("c", 9.0))]
    verdict = judge(gather(runs))
    assert verdict.winner is None
    assert verdict.headline == "No clear winner to accuracy 0.95: a and b are equal within 1 % (4 s)."


def test_what_sets_variants_apart_is_told(made: Made) -> None:
    runs = [made("sync"), made("local")]
    changed = dict(runs[1].scenario)
    changed["training"] = {"strategy": {"kind": "local_sgd", "h": 8}, "optimizer": {"kind": "sgd", "lr": 0.1}}
    page = Page(report([runs[0], replace(runs[1], scenario=changed)]))
    told = page.text.split("How the variants differ")[1]
    assert "training.strategy.kind local_sgd, training.strategy.h 8" in told
    assert "training.strategy.kind sync_sgd" in told
    assert "optimizer.lr" not in told.split("Scenario of")[0]


def test_who_never_reaches_the_target_cannot_win(made: Made) -> None:
    runs = [made("sync", seed, target_s=10.0 + seed) for seed in (1, 2)]
    runs += [made("fast", seed, target_s=None if seed == 2 else 1.0) for seed in (1, 2)]
    verdict = judge(gather(runs))
    assert verdict.winner == "sync"
    assert "no other does in every seed" in verdict.headline
    assert verdict.rest == "Never reached accuracy 0.95: fast in 1 of 2 seeds."


def test_nobody_reaches_the_target(made: Made) -> None:
    verdict = judge(gather([made("sync", target_s=None), made("gossip", target_s=None)]))
    assert verdict.winner is None
    assert verdict.headline == "No variant reaches accuracy 0.95 in every seed."
    assert verdict.rest == "Never reached accuracy 0.95: sync and gossip."


def test_timing_only_is_decided_by_the_rate(made: Made) -> None:
    verdict = judge(
        gather([made("slow", learns=False, wait=True), made("fast", learns=False, wait=False, speed=0.5)])
    )
    assert verdict.winner == "fast"
    assert re.fullmatch(
        r"fast is fastest, [\d,]+ samples/s: [\d.]+ times as fast as slow, .*", verdict.headline
    )


def test_a_single_run_gets_its_sentence(made: Made) -> None:
    verdict = judge(gather([made("sync", target_s=9.0)]))
    assert re.fullmatch(
        r"sync reaches accuracy 0.95 after 9 s; its workers wait [\d.]+ % of their time\.", verdict.headline
    )


@pytest.mark.parametrize("workers", [1, 4, 16])
@pytest.mark.parametrize("learns", [True, False])
def test_all_sections_are_there(
    tmp_path: Path, study_at: Callable[..., list[Run]], workers: int, learns: bool
) -> None:
    study_at(tmp_path, workers=workers, steps=12, learns=learns)
    page = Page(report(store.find_runs(tmp_path)))
    expected = {"breakdown", "timeline", "waiting-map", "waiting", "links"}
    if workers == 1:
        expected -= {"waiting", "waiting-map"}
        assert "No worker waits." in page.text
    if learns:
        expected |= {f"{metric}-{over}" for metric in ("loss", "accuracy") for over in ("time_s", "samples")}
    assert page.figures().keys() == expected
    places = {attributes["id"] for tag, attributes in page.elements if attributes.get("class") == "chart"}
    assert places == expected
    headings = [tag for tag, _ in page.elements if tag == "h2"]
    assert len(headings) == 6 if learns else 5


def test_both_sample_counts_stand_at_the_head(made: Made) -> None:
    head = Page(report([made("sync"), made("gossip")])).text.split("Loss against time")[0]
    assert "really computes 32 samples of digits_mlp (the problem)" in " ".join(head.split())
    assert "charged the time of 32 samples of resnet18 (the workload)" in " ".join(head.split())
    assert "samples computed" in head
    assert "samples costed" in head
    timing = Page(report([made("sync", learns=False)])).text
    assert "Timing only: each gradient is charged the time of 32 samples of resnet18" in " ".join(
        timing.split()
    )


def test_the_page_needs_nothing_from_elsewhere(made: Made) -> None:
    text = report([made("sync")])
    page = Page(text)
    assert not [tag for tag, _ in page.elements if tag in ("link", "img", "iframe", "object", "embed")]
    assert not [attributes for tag, attributes in page.elements if tag == "script" and "src" in attributes]
    policy = next(a["content"] for t, a in page.elements if t == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert text.count("plotly.js v") == 1, "plotly.js is embedded once"
    assert "prefers-color-scheme: dark" in text


WILD = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "<!--<script>",
    "'};alert(1);//",
    "%{fullData.name}",
]


@pytest.mark.parametrize("name", WILD)
def test_names_out_of_files_stay_text(tmp_path: Path, synthetic: ModuleType, name: str) -> None:
    result = synthetic.make_result(workers=4, steps=6, variant=name)
    codes = result.spans["name"].codes
    result.spans = {**result.spans, "name": Coded(codes, (name, name, name))}
    result.workers = {**result.workers, "host": Coded.of([name] * 4)}
    result.links = {**result.links, "link": np.array([name, name + "2"], dtype=object)}
    result.summary |= {"executed": name, "costed": name, "digest": name}
    document = {**synthetic.make_scenario(variant=name), "name": name}
    store.write_run(tmp_path / "run", document, result)
    text = report([store.read_run(tmp_path / "run")])
    page = Page(text)
    plain = Page(
        report(
            [
                Run(
                    synthetic.make_scenario(),
                    {},
                    synthetic.make_result().summary,
                    None,
                    synthetic.make_result(),
                )
            ]
        )
    )
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in plain.elements}, "no element of its own"
    assert not [a for _, a in page.elements for key in a if key.startswith("on")]
    assert len(page.scripts) == len(plain.scripts)
    assert name in page.text, "it is shown as it is"
    figures = page.figures()
    assert figures["waiting"]["traces"][0]["name"] == html.escape(name[:60], quote=False)


def test_a_curve_over_seeds_has_its_band(made: Made) -> None:
    runs = [made("sync", seed) for seed in (1, 2, 3)]
    curve = curve_of(gather(runs).groups[0], "time_s", "loss")
    assert curve is not None
    assert (curve.low <= curve.middle).all()
    assert (curve.middle <= curve.high).all()
    assert (curve.low < curve.high).any()
    end = min(float(run.columns("curve")["time_s"].max()) for run in runs)  # type: ignore[index]
    assert curve.x[-1] == end, "no seed is continued beyond its end"


def test_a_diverged_loss_leaves_a_gap_and_no_error(made: Made) -> None:
    run = made("sync")
    assert run.result is not None
    assert run.result.curve is not None
    loss = np.array(run.result.curve["loss"])
    loss[5:] = np.nan
    loss[4] = np.inf
    run.result.curve = {**run.result.curve, "loss": loss}
    trace = Page(report([run])).figures()["loss-time_s"]["traces"][0]
    assert len(values(trace["y"])) == 4


def test_breakdown_bars_add_up(made: Made) -> None:
    figure = Page(report([made("sync"), made("gossip", wait=False)])).figures()["breakdown"]
    total = sum(values(trace["x"]) for trace in figure["traces"])
    assert total == pytest.approx([1, 1], abs=2e-3)
    assert figure["traces"][0]["y"] == ["gossip", "sync"], "plotly draws the first at the bottom"


def test_colours_are_of_the_variant_in_every_chart(made: Made) -> None:
    figures = Page(report([made("sync"), made("gossip", wait=False)])).figures()
    for name in ("loss-time_s", "accuracy-samples", "waiting", "links"):
        colours = {
            trace["name"]: trace.get("line", {}).get("color") or trace["marker"]["color"]
            for trace in figures[name]["traces"]
        }
        assert colours == {"sync": "var(--line0)", "gossip": "var(--line1)"}, name


def test_thousands_of_workers_are_drawn_in_part_and_it_is_said(made: Made) -> None:
    began = perf_counter()
    text = report([made("sync", workers=4000, steps=10), made("gossip", workers=4000, steps=10, wait=False)])
    assert perf_counter() - began < 15
    assert len(text) < 10_000_000
    page = Page(text)
    figures = page.figures()
    assert "a sample of workers" in page.text
    titles = [a["text"] for a in figures["timeline"]["layout"]["annotations"]]
    assert titles[0] == f"<b>sync</b>: {timeline.MAX_ROWS} of 4,000 workers"
    bars = sum(len(trace["customdata"]) for trace in figures["timeline"]["traces"])
    assert bars <= 3 * timeline.MAX_SPANS
    assert "sorted" in figures["waiting"]["layout"]["xaxis"]["title"]["text"]
    assert len(figures["links"]["layout"]["yaxis"]["ticktext"]) == waiting.MAX_LINKS
    assert "links-all" in figures
    assert "3999 (h999): 0.0 %" in page.text, "the worker that all wait for is named"


def test_the_map_of_waiting_adds_up_to_the_waiting(made: Made) -> None:
    run = made("sync", workers=7, steps=30)
    lane = timeline.lanes_of(gather([run]))[0]
    end = float(np.asarray(lane.spans["end_s"]).max())
    shares = timeline.waiting_shares(lane, end)
    expected = np.asarray(run.columns("workers")["waiting_fraction"], dtype=float)  # type: ignore[index]
    assert np.nanmean(shares, axis=1) == pytest.approx(expected, abs=1e-9)


def test_bins_hold_what_intervals_cover() -> None:
    random = np.random.default_rng(0)
    start = random.uniform(0, 9, 300)
    stop = start + random.uniform(0, 1, 300)
    row = random.integers(0, 3, 300)
    found = timeline.binned(row, start, stop, 3, 10.0)
    edges = np.linspace(0, 10, timeline.BINS + 1)
    for one in range(3):
        covered = [
            np.clip(np.minimum(stop, high) - np.maximum(start, low), 0, None)[row == one].sum()
            for low, high in pairwise(edges)
        ]
        assert found[one] == pytest.approx(covered, abs=1e-9)


def test_a_run_without_spans_says_how_to_get_a_timeline(tmp_path: Path, synthetic: ModuleType) -> None:
    store.write_run(tmp_path / "run", synthetic.make_scenario(), synthetic.make_result(), record="summary")
    page = Page(report([store.read_run(tmp_path / "run")]))
    assert "run with --record all" in page.text
    assert "timeline" not in page.figures()
    assert {"loss-time_s", "waiting", "links"} <= page.figures().keys()


def test_many_variants_are_all_in_the_table(made: Made) -> None:
    page = Page(report([made(f"v{number}", workers=2, steps=3) for number in range(14)]))
    assert "v13" in page.text
    assert "Charts show the first 10 variants of 14" in page.text
    assert len(page.figures()["accuracy-time_s"]["traces"]) == 20, "a line and a mark each"


def test_two_runs_of_one_seed_are_wrong_input(made: Made) -> None:
    with pytest.raises(InputError):
        report([made("sync"), made("sync")])


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium here")
def test_a_browser_draws_every_chart_and_runs_no_name(
    tmp_path: Path, study_at: Callable[..., list[Run]], synthetic: ModuleType
) -> None:
    study_at(tmp_path, seeds=(1,), workers=4, steps=12)
    name = "<img src=x onerror=\"document.title='broken'\">"
    wild = Run(synthetic.make_scenario(name), {}, synthetic.make_result(variant=name).summary, None,
               synthetic.make_result(variant=name))  # fmt: skip
    write_report([*store.find_runs(tmp_path), wild], tmp_path / "report.html")
    shown = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,6000",
            "--virtual-time-budget=8000", "--dump-dom", f"file://{tmp_path / 'report.html'}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    charts = re.findall(r'<div class="chart[^"]*" id="([^"]+)"[^>]*data-drawn="yes"', shown)
    assert set(charts) == Page(shown).figures().keys()
    assert shown.count("main-svg") >= len(charts)
    assert "<title>quickstart: Paceline report</title>" in shown
