"""Scenario files in: extends, variants, includes, overrides, own code, defaults, and the way back."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios import resolved
from scenarios.check import resolve, unsupported
from scenarios.include import SCENARIOS, shipped
from scenarios.loading import load
from simulator.errors import InputError

SMALL = """
paceline: 1
cluster:
  topology: {kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us}}
workload: {model: resnet18, batch: 32}
training:
  strategy: {kind: local_sgd, h: 8, start_step: 4}
  optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
stragglers: [{where: {worker: 1}, per: run, factor: {kind: constant, value: 3.0}}]
stop: {steps: 10, time: 1 h}
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="s.yaml"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return file

    return write


def only(file, *sets, **options):
    study = resolve(load(file, sets, **options))
    (scenario,) = study.scenarios
    return scenario


def test_the_smallest_scenario_gets_every_default(write):
    scenario = only(
        write(
            """
        cluster: {topology: {kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us}}}
        workload: {model: resnet18, batch: 32}
        training: {strategy: {kind: sync_sgd}}
        stop: {steps: 10}
        """,
            "small one.yaml",
        )
    )
    assert (scenario.name, scenario.variant, scenario.seed) == ("small_one", "default", 1)
    assert scenario.cluster.topology.link.bandwidth == 1.25e9
    assert scenario.training.optimizer.kind == "sgd"
    assert scenario.network.fidelity == "bundles"
    assert scenario.problem is None


def test_numbers_keep_their_kind(write):
    scenario = only(write(SMALL), "training.optimizer.lr=1e-3", "stop.steps=1000")
    assert scenario.training.optimizer.lr == 0.001
    assert type(scenario.stop.steps) is int


def test_variants_merge_and_replace(write):
    study = resolve(
        load(
            write(
                SMALL
                + """
variants:
  same: {}
  dotted: {training.strategy.h: 2}
  nested: {training: {strategy: {h: 3}}}
  with_kind: {training.strategy: {kind: local_sgd, h: 4}}
  stop: {stop: {steps: 5}}
  dotted_stop: {stop.steps: 5}
  lists: {stragglers: []}
  in_a_list: {stragglers.0.factor.value: 5.0, stragglers.0.where: all}
  deep: {cluster.topology.link.bandwidth: 25 Gbit/s}
  both: {training: {optimizer: {lr: 0.2}}, training.strategy.h: 1}
"""
            )
        )
    )
    by = {scenario.variant: scenario for scenario in study.scenarios}
    strategy = {name: (s.training.strategy.h, s.training.strategy.start_step) for name, s in by.items()}
    assert strategy["same"] == (8, 4)
    assert strategy["dotted"] == (2, 4)
    assert strategy["nested"] == (3, 4)
    assert strategy["with_kind"] == (4, 0), "a mapping with a kind replaces the old one whole"
    assert by["stop"].stop.time is None, "a stop replaces the old one whole"
    assert by["dotted_stop"].stop.time == 3600.0
    assert by["lists"].stragglers == ()
    assert by["in_a_list"].stragglers[0].factor.value == 5.0
    assert by["in_a_list"].stragglers[0].where == "all"
    assert by["deep"].cluster.topology.link.bandwidth == 3.125e9
    assert by["deep"].cluster.topology.link.latency == 5e-6
    assert by["both"].training.optimizer.lr == 0.2
    assert by["both"].training.optimizer.momentum == 0.9
    assert strategy["both"] == (1, 4)


def test_a_target_is_replaced_whole(write):
    file = write(
        SMALL
        + """
problem: {kind: digits_mlp}
variants:
  a: {stop: {steps: 5, target: {accuracy: 0.9}}}
  b: {stop.target: {loss: 0.1}}
""",
        "t.yaml",
    )
    study = load(file, ["stop.target={accuracy: 0.5}"])
    assert {s.variant: s.stop.target.accuracy for s in study.scenarios} == {"a": 0.5, "b": 0.5}
    study = load(file)
    assert study.scenario("b").stop.target.accuracy is None


def test_extends_takes_everything_and_replaces_lists_and_variants(write):
    write(SMALL + "seed: 5\nvariants: {a: {}, b: {training.strategy.h: 2}}\n", "parent.yaml")
    study = resolve(
        load(
            write(
                """
        extends: parent.yaml
        name: child
        seeds: {first: 3, count: 2, max: 8}
        stop: {time: 2 s}
        training.optimizer: {kind: adam, lr: 0.001}
        stragglers: [{where: all, per: step, factor: {kind: gamma, mean: 1, cv: 0.1}}]
        variants: {c: {}}
        """,
                "sub/child.yaml",
            ).rename(write("x", "child.yaml"))
        )
    )
    (c,) = study.scenarios
    assert (study.name, c.name, c.variant, study.seeds) == ("child", "child", "c", (3, 4))
    assert (c.stop.time, c.stop.steps) == (2.0, None)
    assert c.training.optimizer.kind == "adam"
    assert c.training.strategy.h == 8
    assert len(c.stragglers) == 1
    assert c.stragglers[0].factor.mean == 1.0


def test_extends_a_shipped_scenario(write):
    file = write("extends: quickstart\nname: mine\nvariants: {only: {}}\n")
    scenario = only(file)
    assert scenario.workload.model == "resnet18"
    assert scenario.cluster.placement.workers == 16


def test_includes_are_relative_to_their_file(write):
    write("{bandwidth: 1 Gbit/s, latency: 1 ms}", "nets/link.yaml")
    write(
        """
        paceline: 1
        topology: {kind: star, hosts: 3, link: link.yaml, host: {kind: cpu_only}}
        placement: {workers: 2}
        ---
        paceline: 1
        name: five
        topology: {kind: star, hosts: 5, link: link.yaml}
        """,
        "nets/clusters.yaml",
    )
    write("strategy: {kind: sync_sgd}", "training.yaml")
    text = """
        cluster: nets/clusters.yaml
        workload: {model: resnet18, batch: 32}
        training: training.yaml
        stop: {steps: 1}
        """
    scenario = only(write(text))
    assert scenario.cluster.topology.hosts == 3
    assert scenario.cluster.placement.workers == 2
    assert scenario.cluster.topology.link.latency == 0.001
    assert only(write(text.replace("clusters.yaml", "clusters.yaml#five"))).cluster.topology.hosts == 5
    mixed = only(
        write(text.replace("nets/clusters.yaml", "{topology: nets/clusters.yaml, placement: {per: host}}"))
    )
    assert mixed.cluster.topology.hosts == 3
    assert (mixed.cluster.placement.workers, mixed.cluster.placement.per) == (2, "host")


def test_overrides_reach_into_included_files(write):
    file = write("""
        cluster: four_by_four
        workload: {model: resnet18, batch: 32}
        training: {strategy: {kind: sync_sgd}}
        stop: {steps: 1}
        variants:
          slow: {cluster.topology.link.bandwidth: 1 Gbit/s}
          other: {cluster: star_16, cluster.topology.link.latency: 1 ms}
        """)
    study = load(file, ["cluster.placement.workers=4"])
    assert study.scenario("slow").cluster.topology.link.bandwidth == 1.25e8
    assert study.scenario("other").cluster.topology.link.latency == 0.001
    assert {s.cluster.placement.workers for s in study.scenarios} == {4}


def test_profiles_in_place_in_files_and_by_name(write):
    write("paceline: 1\nprofile: {kind: constant, step: 20 ms}\n", "mine.yaml")
    link = "link: {bandwidth: 1 Gbit/s, latency: 1 us}"
    hosts = f"{{kind: star, hosts: 2, {link}, host: {{kind: cpu_only, devices: DEVICES}}}}"
    text = SMALL.replace("{kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us}}", hosts)
    for devices, step in [
        ("{profile: mine.yaml}", 0.02),
        ("{profile: {kind: constant, step: 100 ms}}", 0.1),
        ("{profile: own}", 0.3),
    ]:
        more = "profiles: {own: {kind: constant, step: 300 ms}}\n" if "own" in devices else ""
        scenario = only(write(text.replace("DEVICES", devices) + more))
        name = scenario.cluster.topology.host.devices.profile
        assert scenario.profiles[name].step == step


def test_sets_have_the_last_word(write):
    file = write(SMALL + "variants: {a: {training.strategy.h: 2}, b: {}}\n")
    study = load(file, ["training.strategy.h=5", "variants.b.training.strategy.h=6", "name=other"])
    assert {s.variant: s.training.strategy.h for s in study.scenarios} == {"a": 5, "b": 6}
    assert study.name == "other"
    listed = only(write(SMALL), "stragglers.0.factor={kind: constant, value: 7}", "seeds=[4, 5]")
    assert listed.stragglers[0].factor.value == 7.0
    assert only(write(SMALL), "stop.time=").stop.time is None
    assert only(write(SMALL), "training.optimizer.lr=1e-3").training.optimizer.lr == 0.001


def test_seeds(write):
    for given_seeds, seeds in [
        ("seeds: [3, 1]", (3, 1)),
        ("seeds: {first: 5, count: 2}", (5, 6)),
        ("seed: 9", (9,)),
        ("", (1,)),
    ]:
        study = load(write(SMALL + given_seeds))
        assert study.seeds == seeds
        assert [run.seed for run in study.runs()] == list(seeds)
    assert load(write(SMALL + "seeds: [3, 1]"), seed=8).seeds == (8,)


def test_a_target_alone_ends_after_many_epochs(write):
    scenario = only(write(SMALL + "problem: {kind: digits_mlp}"), "stop={target: {accuracy: 0.9}}")
    assert scenario.stop.epochs == 1000


def test_samples_are_found_beside_the_file(write):
    write("1.0\n2.0\n", "data/steps.csv")
    text = SMALL.replace("{kind: constant, value: 3.0}", "{kind: empirical, file: data/steps.csv}")
    scenario = only(write(text))
    assert scenario.stragglers[0].factor.mean == 1.5
    assert scenario.stragglers[0].factor.file.startswith("/")


OWN = '''
from typing import ClassVar, Literal
from simulator.strategies.base import Strategy

class Mine(Strategy):
    """Steps alone."""

    kind: Literal["mine"] = "mine"
    every: tuple[int, ...] = (1, 2)

    def worker(self, w):
        x, opt = w.initial_model(), w.optimizer()
        for _ in w.steps():
            g = yield from w.gradient(x)
            x, opt = w.apply(x, g, opt)
'''


def test_own_code_only_when_allowed(write, tmp_path, monkeypatch):
    write(OWN, "own_method.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = SMALL.replace("{kind: local_sgd, h: 8, start_step: 4}", '{kind: "own_method:Mine", every: [3]}')
    with pytest.raises(InputError, match="--allow-code") as caught:
        load(write(text))
    assert caught.value.field == "training.strategy"
    assert "own_method" not in sys.modules
    scenario = only(write(text), allow_code=True)
    assert type(scenario.training.strategy).__name__ == "Mine"
    assert scenario.training.strategy.every == (3,)
    again = only(write(resolved.as_yaml(scenario), "again.yaml"), allow_code=True)
    assert resolved.document(again) == resolved.document(scenario)
    for kind, says in [
        ("own_method:Other", "has no attribute"),
        ("no_such_module:X", "No module named"),
        ("json:loads", "a subclass of"),
        ("own_method:Mine:x", "has no attribute"),
    ]:
        with pytest.raises(InputError, match=says):
            load(write(text.replace("own_method:Mine", kind)), allow_code=True)
    with pytest.raises(InputError, match="a key of that class") as caught:
        load(write(text.replace("every", "evry")), allow_code=True)
    assert caught.value.line == 7
    sys.modules.pop("own_method", None)


def test_unused_parts_leave_no_trace(write):
    """A graph for one variant does not change the hash of another."""
    text = SMALL.replace("start_step: 4}", "start_step: 4}\n  gossip: {graph: ring}")
    two = resolve(load(write(text + "variants: {a: {}, b: {training.strategy: {kind: dpsgd}}}")))
    assert two.scenario("a").training.gossip is None
    assert two.scenario("b").training.gossip is not None
    plain = resolve(load(write(SMALL + "variants: {a: {}}")))
    assert resolved.hash_of(plain.scenario("a")) == resolved.hash_of(two.scenario("a"))


def test_what_run_cannot_execute_is_named(write):
    sweep = write(SMALL + "sweep: {grid: {training.strategy.h: [1, 2]}}")
    assert [error.field for error in unsupported(resolve(load(sweep)))] == ["sweep"]
    later = write(SMALL.replace("{kind: local_sgd, h: 8, start_step: 4}", "{kind: prague, group: 3}"))
    assert [error.field for error in unsupported(resolve(load(later)))] == ["training.strategy.kind"]
    assert unsupported(resolve(load(write(SMALL)))) == []


ALL = [*shipped(SCENARIOS)]


@pytest.mark.parametrize("name", ALL)
def test_resolved_files_load_as_the_same_scenario(name, tmp_path):
    study = resolve(load(name))
    assert [error.field for error in unsupported(study) if error.field != "sweep"] == []
    for scenario in study.scenarios:
        file = tmp_path / "resolved.yaml"
        file.write_text(resolved.as_yaml(scenario))
        (again,) = resolve(load(file)).scenarios
        assert again == scenario
        assert resolved.hash_of(again) == resolved.hash_of(scenario)
        assert resolved.as_yaml(again) == file.read_text()


@pytest.mark.parametrize("name", ALL)
def test_shipped_scenarios_say_what_they_are_for(name):
    from scenarios.catalogue import header

    parts = header(shipped(SCENARIOS)[name])
    assert set(parts) >= {"Question", "Source", "Finding"}
    assert load(name).name == name


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bandwidth=st.floats(1.0, 1e15),
    latency=st.floats(0.0, 1e3),
    lr=st.floats(1e-9, 1e3),
    h=st.integers(1, 10**9),
    name=st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]{0,20}", fullmatch=True),
    seed=st.integers(0, 2**63 - 1),
)
def test_any_scenario_survives_the_round_trip(tmp_path, bandwidth, latency, lr, h, name, seed):
    from simulator import units

    file = tmp_path / "s.yaml"
    file.write_text(SMALL)
    sets = [
        f"cluster.topology.link.bandwidth={units.format(bandwidth, 'bandwidth')}",
        f"cluster.topology.link.latency={units.format(latency, 'time')}",
        f"training.optimizer.lr={lr!r}",
        f"training.strategy.h={h}",
        f"name='{name}'",
        f"seed={seed}",
    ]
    scenario = only(file, *sets)
    assert scenario.cluster.topology.link.bandwidth == bandwidth
    assert scenario.training.optimizer.lr == lr
    (tmp_path / "r.yaml").write_text(resolved.as_yaml(scenario))
    again = only(tmp_path / "r.yaml")
    assert again == scenario
    assert resolved.hash_of(again) == resolved.hash_of(scenario)


CONTRACT = Path(__file__).parents[3] / "shared" / "schema.md"


@pytest.mark.skipif(not CONTRACT.exists(), reason="only where the contract lies beside the project")
def test_the_contracts_examples_load(tmp_path):
    text = CONTRACT.read_text()
    blocks = re.findall(r"\*\*1\.\d [^`]*`(?:\S*/)?(\S+?)`\n```yaml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 7
    for name, block in blocks:
        (tmp_path / name).write_text(block)
    for name in ("quickstart", "18_prague", "tune_18", "llama3_70b", "gpt3_175b"):
        study = resolve(load(tmp_path / f"{name}.yaml"))
        assert study.name.startswith(name)
    assert [error.field for error in unsupported(study)] == ["layout"]
