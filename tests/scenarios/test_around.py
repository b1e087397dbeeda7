"""Files with links that change, background traffic and other jobs: what is wrong is told, the rest runs."""

from __future__ import annotations

import pytest

from scenarios.build import job_of, simulate
from scenarios.check import resolve
from scenarios.loading import load
from scenarios.resolved import as_yaml
from simulator.errors import InputError, InputErrors

FILE = """\
name: around
cluster:
  topology:
    kind: star
    hosts: 6
    link: {bandwidth: 10 Gbit/s, latency: 5 us}
    host: {kind: cpu_only, devices: {profile: v100_16gb_sxm, class: gpu}}
  placement: {workers: 3}
workload: {model: resnet18, batch: 32}
training: {strategy: {kind: sync_sgd}}
network:
  schedule:
    - {where: {link: "h0->s0"}, at: [100 ms], bandwidth: [0.5]}
  background:
    - {kind: poisson, load: 0.2, src: "h*", dst: h1}
others:
  - name: beside
    placement: {workers: 2}
    workload: {model: resnet18, batch: 16}
    training: {strategy: {kind: local_sgd, h: 2}}
stop: {steps: 5}
"""
SLOW = "{where: {worker: 2}, per: run, factor: {kind: constant, value: 2}}"


@pytest.fixture
def file(tmp_path):
    def write(*changes):
        text = FILE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "around.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "says"),
    [
        ('"h0->s0"', '"h9->s0"', 13, "network.schedule.0.where.link", "links here: h0->s0, s0->h0"),
        ('"h0->s0"', "[h0, s1]", 13, "network.schedule.0.where.link", "found 's1'"),
        ("[0.5]", "[0.5, 1.0]", 13, "network.schedule.0", "found 1 times and 2 bandwidths"),
        ("{link:", "{links:", 13, "network.schedule.0.where.links", "did you mean 'link'"),
        ('"h*"', "s0", 15, "network.background.0.src", "hosts here: h0, h1, h2, h3"),
        ("dst: h1", "dst: [h1, x?]", 15, "network.background.0.dst", "found 'x?'"),
        ("load: 0.2", "load: 1.2", 15, "network.background.0.load", "less than 1"),
        ("poisson", "poison", 15, "network.background.0.kind", "did you mean 'poisson'"),
        ("poisson, load: 0.2", "endless, load: 0.2", 15, "network.background.0.load", "the unknown key"),
        ("{workers: 2}", "{workers: 4}", 18, "others.0.placement.workers", "at most 3"),
        ("{workers: 2}", "{hosts: h7}", 18, "others.0.placement.hosts", "hosts here: h0"),
        ("{workers: 3}", "{hosts: h7}", 8, "cluster.placement.hosts", "hosts here: h0"),
        ("batch: 16", "batch: 16, dtype: fp8", 19, "others.0.workload.dtype", ""),
        ("resnet18, batch: 16", "resnet19, batch: 16", 19, "others.0.workload.model", "did you mean"),
        ("local_sgd, h: 2", "dpsgd", 20, "others.0.training.gossip", "graph: ring"),
        ("local_sgd, h: 2", "sync_sgd, backup: 2", 20, "others.0.training.strategy.backup", "the 2 workers"),
        ("h: 2}}", "h: 2}, gossip: {graph: ring}}", 20, "others.0.training.gossip", "that gossips"),
        ("network:\n", "network:\n  fidelity: closed_form\n", 15, "network.background", "flows or bundles"),
        ("network:\n", "network:\n  fidelity: closed_form\n", 17, "others", "shares no link"),
        ("  - name: beside", "  - name: beside\n    collective: {tree_chunks: 4}", 18,
         "others.0.collective.tree_chunks", "an all_reduce by tree"),
        ("  - name: beside", f"  - name: beside\n    stragglers: [{SLOW}]", 18,
         "others.0.stragglers.0.where", "from 0 to 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(file, old, new, line, field, says):
    path = file((old, new))
    with pytest.raises(InputErrors) as caught:
        resolve(load(path))
    (error,) = [error for error in caught.value.errors if error.field == field]
    assert (error.file, error.line) == (str(path), line)
    assert says in str(error)


def test_two_jobs_of_one_name(file):
    second = "others:\n  - {name: beside, placement: {workers: 1}, workload: {model: vgg16, batch: 1}, "
    path = file(("others:\n", second + "training: {strategy: {kind: sync_sgd}}}\n"))
    with pytest.raises(InputError, match=r"others\.1\.name: found 'beside' again"):
        resolve(load(path))


def test_it_runs_and_its_resolved_form_is_the_same_run(file, tmp_path):
    (scenario,) = resolve(load(file())).scenarios
    first = simulate(scenario)
    again = tmp_path / "again.yaml"
    again.write_text(as_yaml(scenario))
    (loaded,) = resolve(load(again)).scenarios
    assert loaded == scenario
    assert simulate(loaded, engine="process").summary["digest"] == first.summary["digest"]
    assert first.links["background_bytes"].sum() > 0
    assert first.summary["others"][0]["steps"] > 0


def test_closed_form_takes_schedules(file):
    alone = FILE[FILE.index("  background") : FILE.index("stop:")]
    (scenario,) = resolve(load(file((alone, "")), ["network.fidelity=closed_form"])).scenarios
    quiet = scenario.model_copy(update={"network": scenario.network.model_copy(update={"schedule": ()})})
    assert simulate(scenario).summary["simulated_s"] > simulate(quiet).summary["simulated_s"]


def test_jobs_sit_on_devices_of_their_own(file):
    study = load(file(("{workers: 3}", "{hosts: [h1, h3, h5]}")))
    job = job_of(resolve(study).scenarios[0])
    assert job.workers.host.tolist() == [1, 3, 5]
    assert [other.job.workers.host.tolist() for other in job.others] == [[0, 2]]
    assert job.others[0].job.seed != job.seed


def test_each_server_has_a_host_of_its_own(file):
    server = "{kind: parameter_server}"
    job = job_of(
        resolve(load(file(("{kind: sync_sgd}", server), ("{kind: local_sgd, h: 2}", server)))).scenarios[0]
    )
    names = [job.fabric.node_names[node] for node in (job.server_node, job.others[0].job.server_node)]
    assert names == ["server", "server1"]
