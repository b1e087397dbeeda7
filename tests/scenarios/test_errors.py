"""Wrong scenario files: what is said, where, and that the traps of other simulators are errors here."""

from __future__ import annotations

import json
import textwrap

import pytest

from scenarios import cli
from scenarios.check import resolve
from scenarios.loading import load
from simulator.errors import InputError, InputErrors

TWO = "factor: {kind: constant, value: 2}}]"
BASE = """\
paceline: 1
name: base
cluster:
  topology: {kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us}}
  placement: {workers: 4}
workload: {model: resnet18, batch: 32}
training: {strategy: {kind: local_sgd, h: 8}}
stragglers: []
stop: {steps: 10}
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="s.yaml"):
        file = tmp_path / name
        file.write_text(textwrap.dedent(text))
        return file

    return write


def complaints(file, *sets, **options):
    with pytest.raises(InputError) as caught:
        resolve(load(file, sets, **options))
    error = caught.value
    return error.errors if isinstance(error, InputErrors) else (error,)


def complaint(file, *sets, **options):
    (error,) = complaints(file, *sets, **options)
    return error


def replaced(old, new):
    assert old in BASE
    return BASE.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "says"),
    [
        # quantities
        ("10 Gbit/s", "10", 4, "cluster.topology.link.bandwidth", "write '10 B/s'"),
        ("10 Gbit/s", "10 Gbps", 4, "cluster.topology.link.bandwidth", "'Gbit/s' or 'GB/s'"),
        ("10 Gbit/s", "10 GB", 4, "cluster.topology.link.bandwidth", "a unit of bytes"),
        ("10 Gbit/s", "-10 Gbit/s", 4, "cluster.topology.link.bandwidth", "more than zero"),
        ("10 Gbit/s", "0 Gbit/s", 4, "cluster.topology.link.bandwidth", "more than zero"),
        ("10 Gbit/s", "1e400 Gbit/s", 4, "cluster.topology.link.bandwidth", "a float can hold"),
        ("10 Gbit/s", ".inf", 4, "", "finite"),
        ("10 Gbit/s", "true", 4, "cluster.topology.link.bandwidth", "found true"),
        ("5 us", "0", 4, "cluster.topology.link.latency", "write '0 s'"),
        ("5 us", "5 mb", 4, "cluster.topology.link.latency", "a time with its unit"),
        # numbers
        ("h: 8", "h: true", 7, "training.strategy.h", "an integer"),
        ("h: 8", "h: 8.0", 7, "training.strategy.h", "write 8"),
        ("h: 8", "h: 1e3", 7, "training.strategy.h", "write 1000"),
        ("h: 8", "h: .nan", 7, "", "finite"),
        ("h: 8", "h: -8", 7, "training.strategy.h", "more than 0"),
        ("h: 8", "h: 99999999999999999999", 7, "", "63 bits"),
        ("batch: 32", "batch: '32'", 6, "workload.batch", "without quotes"),
        ("name: base", "name: 18", 2, "name", "in quotes"),
        ("name: base", "name: ../up", 2, "name", "pattern"),
        ("paceline: 1", "paceline: 2", 1, "paceline", "1"),
        ("stop: {steps: 10}", "stop: {steps: 10}\nseed: -1", 10, "seed", "at least 0"),
        ("stop: {steps: 10}", "stop: {steps: 10}\nseed: 1e3", 10, "seed", "write 1000"),
        ("stop: {steps: 10}", "stop: {steps: 10}\nseeds: []", 10, "seeds", "at least 1 items"),
        ("stop: {steps: 10}", "stop: {steps: 10}\nseeds: [4, 5, 4]", 10, "seeds", "4 twice"),
        ("stop: {steps: 10}", "stop: {steps: 10}\nseeds: {first: 1}", 10, "seeds.count", "the key 'count'"),
        ("stop: {steps: 10}", "stop: {steps: 10}\nseeds: {count: 4, max: 2}", 10, "seeds", "at least count"),
        ("stop: {steps: 10}", "stop: {steps: 10}\nseed: 1\nseeds: [1]", 11, "seeds", "either seed or seeds"),
        # names
        ("kind: star", "kind: sstar", 4, "cluster.topology.kind", "did you mean 'star'"),
        ("kind: local_sgd", "kind: localsgd", 7, "training.strategy.kind", "did you mean 'local_sgd'"),
        ("model: resnet18", "model: resnet19", 6, "workload.model", "did you mean 'resnet1"),
        ("stragglers", "stragler", 8, "stragler", "did you mean 'stragglers'"),
        ("steps: 10", "stepps: 10", 9, "stop.stepps", "did you mean 'steps'"),
        ("h: 8", "hh: 8", 7, "training.strategy.hh", "did you mean 'h'"),
        ("cluster:\n", "cluster: no_such_cluster\nx:\n", 3, "cluster", "shipped"),
        # shapes
        ("stop: {steps: 10}", "stop: {}", 9, "stop", "time, steps, samples, epochs or target"),
        ("stop: {steps: 10}", "stop: 10", 9, "stop", "a mapping"),
        ("stop: {steps: 10}", "", 1, "stop", "the key 'stop'"),
        ("stragglers: []", "stragglers: {}", 8, "stragglers", "a list"),
        ("stragglers: []", "stragglers:", 8, "stragglers", "a list"),
        ("stragglers: []", "stragglers: []\nstragglers: []", 9, "", "'stragglers' again"),
        ("{kind: local_sgd, h: 8}", "[local_sgd]", 7, "training.strategy", "a mapping"),
        ("{kind: local_sgd, h: 8}", "local_sgd", 7, "training.strategy", "a mapping"),
        ("{kind: local_sgd, h: 8}", "{h: 8}", 7, "training.strategy", "with the key 'kind'"),
        # what cannot be
        ("workers: 4", "workers: 5", 5, "cluster.placement.workers", "at most 4"),
        ("workers: 4", "workers: 4, order: [tp, dp]", 5, "cluster.placement.order", "no `layout`"),
        ("workload: {model: resnet18, batch: 32}\n", "", 1, "workload", "'workload' or 'problem'"),
        ("training: {strategy: {kind: local_sgd, h: 8}}\n", "", 1, "training", "the key 'training'"),
        ("stop: {steps: 10}", "stop: {steps: 10, target: {accuracy: 0.9}}", 9, "stop.target", "a problem"),
        ("stop: {steps: 10}", "stop: {steps: 10, epochs: 2}", 9, "stop.epochs", "a problem"),
        ("{kind: local_sgd, h: 8}", "{kind: dpsgd}", 7, "training.gossip", "gossip: {graph: ring}"),
        ("{kind: local_sgd, h: 8}", "{kind: local_sgd, h_by_class: {gpu: 2}}", 7,
         "training.strategy.h_by_class.gpu", "a class of device: cpu"),
        ("{kind: local_sgd, h: 8}}", "{kind: local_sgd, h: 8}, gossip: {graph: ring}}", 7, "training.gossip",
         "nothing here uses"),
        ("{kind: local_sgd, h: 8}", "{kind: sync_sgd, backup: 4}", 7, "training.strategy.backup",
         "fewer than the 4"),
        ("stragglers: []", "stragglers: []\nmaths: {dtype: float64}", 9, "maths", "nothing here uses"),
        ("stragglers: []", "stragglers: []\nprofiles: {own: {kind: constant, step: 1 s}}", 9, "profiles.own",
         "some devices have"),
        ("stragglers: []", "stragglers: []\nnetwork: {collective: {tree_chunks: 4}}", 9,
         "network.collective.tree_chunks", "tree"),
        ("stragglers: []", "stragglers: [{where: {worker: 4}, per: run, " + TWO, 8,
         "stragglers.0.where", "a worker from 0 to 3"),
        ("stragglers: []", "stragglers: [{where: {host: h9}, per: run, " + TWO, 8,
         "stragglers.0.where", "a host"),
        ("stragglers: []", "stragglers: [{where: {class: gpu}, per: run, " + TWO, 8,
         "stragglers.0.where", "class"),
        ("stragglers: []", "stragglers: [{where: {link: 'h0->s0'}, per: run, " + TWO, 8,
         "stragglers.0.where", "not links"),
        ("stragglers: []", "stragglers: [{per: run, factor: {kind: empirical, file: no.csv}}]", 8,
         "stragglers.0.factor", "no file"),
        ("batch: 32}", "batch: 32, seq: 4}", 6, "workload.batch", "unknown key"),
        ("stragglers: []", "layout: {tp: 2}", 8, "layout", "a workload with seq"),
    ],
)  # fmt: skip
def test_one_error(write, old, new, line, field, says):
    file = write(replaced(old, new))
    found = complaints(file)
    matching = [e for e in found if (e.file, e.line, e.field) == (str(file), line, field) and says in str(e)]
    assert matching, "\n".join(map(str, found))


def test_devices_that_cannot_be(write):
    host = "latency: 5 us}, host: {kind: cpu_only, devices: {DEVICES}}}"
    text = BASE.replace("latency: 5 us}}", host)
    for devices, field, says in [
        ("profile: v101_16gb_sxm", "cluster.topology.host.devices.profile", "did you mean 'v100_16gb_sxm'"),
        ("profile: tpu_v4", "workload.dtype", "tpu_v4"),
        ("profile: none.yaml", "cluster.topology.host.devices.profile", "no such file"),
        ("profile: {kind: constant, step: 3}", "profiles.constant.step", "write '3 s'"),
        ("count: 0", "cluster.placement.workers", "devices"),
    ]:
        found = complaints(write(text.replace("DEVICES", devices)))
        assert [e for e in found if e.field == field and e.line in (4, 5, 6) and says in str(e)], found


def test_a_variants_error_stands_at_the_variant(write):
    file = write(
        BASE
        + """\
variants:
  good: {}
  dotted: {training.strategy.hh: 3}
  nested:
    training: {strategy: {h: 0}}
  missing:
    stop: {}
  far: {cluster.topology.link.bandwidth: 3}
  places: {cluster.placement.workers: 40}
  unknown: {cluster.topologie.hosts: 3}
  problem: {stop.target: {accuracy: 0.5}}
"""
    )
    found = complaints(file)
    assert [(e.line, e.field) for e in found] == [
        (12, "training.strategy.hh"),
        (14, "training.strategy.h"),
        (16, "stop"),
        (17, "cluster.topology.link.bandwidth"),
        (19, "cluster.topologie"),
    ]
    fixed = file.read_text().splitlines()
    file.write_text("\n".join([*fixed[:11], *fixed[17:18], *fixed[19:]]) + "\n")
    assert [(e.line, e.field) for e in complaints(file)] == [
        (12, "cluster.placement.workers"),
        (13, "stop.target"),
    ]


@pytest.mark.parametrize(
    ("variants", "line", "says"),
    [
        ("variants: [a]", 10, "a mapping of names"),
        ("variants: {a: 3}", 10, "a mapping of overrides"),
        ("variants: {a: }", 10, "{} for none"),
        ("variants: {'a/b': {}}", 10, "pattern"),
        ("variants: {a: {}}\nvariant: b", 11, "both"),
        ("variants:\n  a: {}\n  a: {}", 12, "'a' again"),
        ("variants: {a: {seeds: [1]}}", 10, "a key that a variant can override"),
        ("variants: {a: {name: x}}", 10, "a key that a variant can override"),
        ("variants: {a: {variants: {}}}", 10, "a key that a variant can override"),
        ("variants: {a: {extends: quickstart}}", 10, "a key that a variant can override"),
        (
            "variants: {a: {training.strategy: {kind: sync_sgd}, training: {strategy: {kind: local_sgd}}}}",
            10,
            "again",
        ),
        ("variants: {a: {stragglers.0.per: run}}", 10, "an index below 0"),
        ("variants: {a: {stragglers.x: run}}", 10, "an index below 0"),
    ],
)
def test_variants_that_cannot_be(write, variants, line, says):
    file = write(BASE + variants)
    found = complaints(file)
    assert [e for e in found if e.line == line and e.file == str(file) and says in str(e)], found


def test_a_broken_base_is_an_error_though_all_variants_replace_it(write):
    text = replaced("kind: local_sgd, h: 8", "kind: locall")
    file = write(text + "variants: {a: {training.strategy: {kind: sync_sgd}}}")
    assert complaint(file).line == 7


def test_a_base_may_lack_what_every_variant_brings(write):
    text = replaced("training: {strategy: {kind: local_sgd, h: 8}}\n", "")
    file = write(text + "variants: {a: {training.strategy: {kind: sync_sgd}}}")
    assert resolve(load(file)).scenarios[0].training.strategy.kind == "sync_sgd"


def test_errors_said_once_though_many_variants_inherit_them(write):
    file = write(replaced("10 Gbit/s", "10 Gbps") + "variants: {a: {}, b: {}, c: {}}")
    assert complaint(file).line == 4


def test_includes_that_cannot_be(write, tmp_path):
    write("extends: b.yaml", "a.yaml")
    write("extends: a.yaml", "b.yaml")
    assert "a.yaml -> b.yaml -> a.yaml" in str(complaint(tmp_path / "a.yaml"))
    write("extends: self.yaml", "self.yaml")
    assert complaint(tmp_path / "self.yaml").line == 1
    write("topology: ring.yaml", "ring.yaml")
    cycle = write(
        replaced("{kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us}}", "ring.yaml")
    )
    assert "ring.yaml -> ring.yaml" in str(complaint(cycle))
    for topology, says in [
        ("none.yaml", "no such file"),
        ("../../../no/none.yaml", "no such file"),
        (str(tmp_path / "x.yaml"), "UTF-8"),
        ("empty.yaml", "empty"),
        ("list.yaml", "a mapping"),
        ("two.yaml#bet", "did you mean 'beta'"),
        (".yaml", "no such file"),
    ]:
        write("", "empty.yaml")
        write("- 1", "list.yaml")
        (tmp_path / "x.yaml").write_bytes(b"\xff\xfe")
        write("name: alpha\nkind: star\n---\nname: beta\nkind: star\n", "two.yaml")
        file = write(
            replaced("{kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us}}", topology)
        )
        error = complaint(file)
        assert says in str(error)
        assert error.line is not None or error.file != str(file)


def test_an_error_in_an_included_file_is_told_of_that_file(write):
    net = write(
        "topology:\n  kind: star\n  hosts: 4\n  link: {bandwidth: 10 Gbps, latency: 5 us}\n", "net.yaml"
    )
    inline = "  topology: {kind: star, hosts: 4, link: {bandwidth: 10 Gbit/s, latency: 5 us}}\n"
    text = replaced(f"\n{inline}  placement: {{workers: 4}}", " net.yaml")
    error = complaint(write(text))
    assert (error.file, error.line, error.column) == (str(net), 4, 21)


def test_extends_must_name_a_scenario(write):
    for named, says in [
        ("3", "FILE.yaml or"),
        ("quickstartt", "did you mean 'quickstart'"),
        ("[a]", "FILE.yaml"),
    ]:
        error = complaint(write(f"name: x\nextends: {named}\n"))
        assert (error.line, error.field) == (2, "extends")
        assert says in str(error)


def test_the_file_asked_for(write, tmp_path):
    for named, says in [
        ("quickstartt", "did you mean 'quickstart'"),
        (str(tmp_path), "FILE.yaml or"),
        (str(tmp_path / "no.yaml"), "no such file"),
        (str(write(BASE, "s.txt")), "must end in .yaml"),
        ("", "FILE.yaml or"),
        ("x\0.yaml", "null"),
        ("x" * 5000, "FILE.yaml or"),
        ("x" * 5000 + ".yaml", "too long"),
        (str(write("just text", "text.yaml")), "a mapping"),
        (str(write("", "empty.yaml")), "empty file"),
    ]:
        assert says in str(complaint(named))
    for seed in (-1, 2**63):
        assert "a seed" in str(complaint(write(BASE), seed=seed))


def test_a_file_of_several_documents_must_be_told_which(write):
    file = write(BASE + "---\n" + BASE.replace("base", "other"))
    assert "#other" in complaint(file).hint
    assert load(f"{file}#other").name == "other"
    assert "did you mean 'other'" in complaint(f"{file}#othr").hint


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("training.strategy.h", "KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("a..b=3", "KEY=VALUE"),
        ("training.strategy.h=-3", "more than 0"),
        ("training.strategy.hh=3", "did you mean 'h'"),
        ("cluster.topology.link.bandwidth=3", "3 B/s"),
        ("nonsense=3", "unknown key"),
        ("training.strategy.h=[1", "YAML"),
        ("training.strategy.h={", "YAML"),
        ("stop.steps.x=3", "an integer"),
        ("stragglers.3.per=run", "an index below 0"),
        ("variants.zzz.training.strategy.h=3", "variant"),
    ],
)
def test_sets_that_cannot_be(write, given, says):
    file = write(BASE)
    found = complaints(file, given)
    assert any(says in str(e) for e in found), found
    assert all(e.file and e.file.startswith("--set") for e in found)


@pytest.mark.parametrize(
    ("expr", "says"),
    [
        ("a.simulated_s / b.simulated_s", "variants"),
        ("default.simulated_ss", "did you mean 'simulated_s'"),
        ("default.simulated_s +", "an expression"),
        ("__import__('os')", "functions"),
        ("default.simulated_s ** 2", "names, numbers"),
        ("open('x')", "functions"),
        ("default", "names, numbers"),
        ("'text'", "names, numbers"),
        ("(" * 500 + "1" + ")" * 500, "an expression"),
        ("max(default.steps, key=1)", "functions"),
        ("1 + " * 3000 + "1", "at most"),
    ],
)
def test_claims_that_cannot_be(write, expr, says):
    claim = f'claims: [{{id: c, text: t, expr: "{expr}", expect: [1, null], source: s, evidence: memory}}]'
    found = complaints(write(BASE + claim))
    assert [e for e in found if e.field == "claims.0.expr" and e.line == 10 and says in str(e)], found


def test_claims_that_can_be(write):
    expr = "max(a.step_time_s.mean, 2 * b.simulated_s) / -(1 + abs(log(mean(a.steps, b.steps))))"
    claim = f"claims: [{{id: c, text: t, expr: '{expr}', expect: [null, 2], source: s, evidence: exact}}]"
    study = resolve(load(write(BASE + "variants: {a: {}, b: {}}\n" + claim)))
    assert study.beside.claims[0].expect == (None, 2.0)


@pytest.mark.parametrize(
    ("sweep", "field", "says"),
    [
        ("grid: {training.strategy.h: [1, x]}", "training.strategy.h", "an integer"),
        ("grid: {training.strategy.hh: [1]}", "training.strategy.hh", "did you mean 'h'"),
        ("grid: {training.strategy.h: []}", "sweep.grid.training.strategy.h", "at least 1"),
        ("grid: {training.strategy.h: 3}", "sweep.grid.training.strategy.h", "a list"),
        ("zip: {training.strategy.h: [1, 2], stop.steps: [3]}", "sweep.zip", "one length"),
        ("variants: [defaultt]", "sweep.variants.0", "did you mean 'default'"),
        ("variants: []", "sweep.variants", "at least 1"),
        ("best: {by: lr, metric: steps}", "sweep.best.by", "a swept key"),
        ("grid: {stop.steps: [1]}, best: {by: stop.steps, metric: stepss}", "sweep.best.metric", "'steps'"),
        (
            "grid: {stop.steps: [1]}, best: {by: stop.steps, metric: steps, goal: least}",
            "sweep.best.goal",
            "'min'",
        ),
        ("seeds: {count: 0}", "sweep.seeds.count", "more than 0"),
        ("gird: {}", "sweep.gird", "did you mean 'grid'"),
    ],
)
def test_sweeps_that_cannot_be(write, sweep, field, says):
    file = write(BASE + f"sweep: {{{sweep}}}")
    found = complaints(file)
    assert [e for e in found if e.field == field and e.line == 10 and says in str(e)], found


def test_exit_code_two_and_all_errors_as_json(write, capsys):
    file = write(replaced("10 Gbit/s", "10").replace("h: 8", "h: x"))
    for command in ("check", "run"):
        assert cli.status([command, str(file), "--json"]) == 2
        out, err = capsys.readouterr()
        body = json.loads(err)
        assert out == ""
        assert set(body["error"]) == {"file", "line", "column", "field", "found", "expected", "hint"}
        assert body["error"]["file"] == str(file)
        assert [one["line"] for one in body["errors"]] == [4, 7]
    assert cli.status(["check", str(file)]) == 2
    assert f"{file}:4:" in capsys.readouterr().err.replace("\n", "")


def test_run_refuses_what_it_cannot_execute(write, capsys):
    file = write(BASE + "sweep: {grid: {training.strategy.h: [1, 2]}}")
    assert cli.status(["check", str(file)]) == 0
    capsys.readouterr()
    assert cli.status(["run", str(file), "--json"]) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["line"], error["field"]) == (10, "sweep")


@pytest.mark.parametrize("kind", ["ad_psgd", "gossip", "sgp"])
@pytest.mark.parametrize("key", ["lazy: 0.5", "weights: max_degree"])
def test_weights_that_nothing_mixes(kind, key, tmp_path):
    """Methods that ask for peers only do not look at how much is mixed: it is refused, not ignored."""
    file = tmp_path / "s.yaml"
    text = f"""cluster: star_16
workload: {{model: resnet18, batch: 32}}
training:
  strategy: {{kind: {kind}}}
  gossip: {{graph: ring, {key}}}
stop: {{steps: 3}}
"""
    file.write_text(text)
    with pytest.raises(InputErrors) as raised:
        resolve(load(file))
    (error,) = raised.value.errors
    assert (error.line, error.field) == (5, f"training.gossip.{key.partition(':')[0]}")
    file.write_text(text.replace(f"kind: {kind}", "kind: dpsgd"))
    resolve(load(file))
