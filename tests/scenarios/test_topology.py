"""`paceline topology show | compare`: names, tables, JSON, drawings, and what is wrong."""

from __future__ import annotations

import json
import re

import pytest

from scenarios import cli
from scenarios.check import resolve
from scenarios.loading import load
from scenarios.machines import built, network_cost
from scenarios.run import run_study
from scenarios.topology import HEAD, Asked, networks, rows
from simulator.errors import InputError, InputErrors
from topologies.cost import cost_of
from topologies.prices import DEFAULT, path_of
from topologies.prices import load as load_prices

CONTRACT = {
    "hosts", "devices", "switches", "links", "bisection_bytes_per_s", "diameter_hops", "oversubscription",
    "cost_usd", "spectral_gap",
}  # fmt: skip
SMALL = """\
name: small
topology: {kind: leaf_spine, hosts: 8, hosts_per_leaf: 4, link: {bandwidth: 25 Gbit/s, latency: 2 us}}
---
name: odd
topology:
  kind: graph
  nodes: [{name: "<i", kind: host, devices: {class: "</script><b>"}}, {name: b, kind: host}]
  links: [{between: ["<i", b], bandwidth: 1 Gbit/s, latency: 2 us}]
"""


@pytest.fixture
def paceline(capsys):
    """Runs a command; its exit code, standard output and standard error."""

    def run(*arguments):
        code = cli.status(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


def test_show_answers_as_the_contract_says(paceline):
    code, out, err = paceline("topology", "show", "four_by_four", "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert set(shown) >= CONTRACT
    assert (shown["hosts"], shown["devices"], shown["switches"], shown["links"]) == (4, 16, 1, 2 * 4 + 2 * 16)
    assert shown["bisection_bytes_per_s"] == pytest.approx(2 * 25e9 / 8 * 0.92)
    assert shown["cost_usd"] == pytest.approx(sum(shown["cost"].values()))
    assert shown["cost_range_usd"][0] < shown["cost_usd"] < shown["cost_range_usd"][1]
    assert shown["prices"]["sources"]["nic"] == {"source": "memory", "date": "2026-12-01"}


def test_show_tells_it_in_words(paceline, small):
    code, out, _ = paceline("topology", "show", f"{small}", "--set", "topology.spines=3")
    assert code == 0
    assert re.search(r"^switches +5$", out, re.MULTILINE)
    assert re.search(r"^disjoint paths +3 \(least 3\)", out, re.MULTILINE)
    assert "ethernet_2026 (memory)" in out


@pytest.mark.parametrize("name", ["star_16", "networks", "two_sites", "four_by_four#two_sites", "quickstart"])
def test_names_of_topologies_and_scenarios(name):
    found = networks(name, Asked())
    assert len({str(one.scenario.cluster) for one in found}) == len(found)
    assert all(len(row) == len(HEAD) for row in rows(found))
    assert len(found) == (9 if name == "networks" else 1)


def test_one_variant_of_a_scenario():
    (one,) = networks("networks", Asked(variant="torus"))
    assert (one.name, one.kind, len(one.fabric.hosts)) == ("torus", "torus", 16)


def test_compare(paceline, tmp_path):
    page = tmp_path / "sub" / "page.html"
    code, out, _ = paceline("topology", "compare", "star_16", "torus_64", "--json", "--out", str(page))
    assert code == 0
    assert [one["name"] for one in json.loads(out)["topologies"]] == ["star_16", "torus_64"]
    text = page.read_text()
    assert text.count('class="chart"') == 2
    assert text.startswith("<!doctype html>")
    code, out, _ = paceline("topology", "compare", "star_16", "torus_64", "--out", str(page))
    assert code == 0
    assert re.search(r"torus_64 +torus +64", out)
    assert str(page) in out


def test_names_out_of_files_do_nothing_in_a_page(paceline, small, tmp_path):
    page = tmp_path / "page.html"
    assert paceline("topology", "show", f"{small}#odd", "--out", str(page))[0] == 0
    text = page.read_text()
    assert "</script><b>" not in text
    assert '"<i"' not in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "star_61"], "did you mean 'star_16'"),
        (["show", "star_16", "--out", "x.png"], "expected FILE.html"),
        (["show", "networks", "--variant", "torsu"], "did you mean 'torus'"),
        (["show", "star_16", "--set", "topology.hots=3"], "did you mean 'hosts'"),
        (["show", "star_16", "--set", "topology.hosts=8"], "16 workers"),
        (["show", "star_16", "--prices", "ethernet"], "did you mean 'ethernet_2026'"),
        (["show", "star_16", "--budget", "10"], "--budget: found a budget of 10 USD; expected at least"),
        (["compare"], "at least one topology"),
        (["show", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_what_is_wrong_is_told(paceline, arguments, says):
    code, out, err = paceline("topology", *arguments)
    assert (code, out) == (2, "")
    assert says in err


# prices in scenarios

PRICED = """\
name: priced
cluster:
  topology: {kind: fat_tree, k: 4, link: {bandwidth: 100 Gbit/s, latency: 1 us}}
  prices: PRICES
workload: {model: resnet18, batch: 8}
training: {strategy: {kind: parameter_server}}
stop: {steps: 2}
"""


def priced(folder, prices=DEFAULT, **changes):
    file = folder / "priced.yaml"
    text = PRICED.replace("PRICES", prices)
    for old, new in changes.items():
        text = text.replace(f"{old}:", f"{new}\n{old}:")
    file.write_text(text)
    return file


def test_a_run_tells_what_its_network_costs(tmp_path):
    study = resolve(load(priced(tmp_path)))
    outcome = run_study(study)
    (scenario,) = study.scenarios
    topology = scenario.cluster.topology
    bought = cost_of(topology, topology.build(), load_prices(DEFAULT)).total
    assert outcome.summary["network_cost_usd"] == pytest.approx(bought)
    assert run_study(resolve(load("smallest"))).runs[0].summary["network_cost_usd"] is None


def test_networks_of_one_cost_whatever_the_method(tmp_path):
    file = priced(tmp_path, workload="  budget_usd: 50000\n  price_factors: {optics: 2}")
    study = resolve(load(file))
    (scenario,) = study.scenarios
    assert network_cost(scenario).total == pytest.approx(50_000)
    with_server, without = built(scenario, 1), built(scenario)
    assert set(with_server.bandwidth) == set(without.bandwidth)
    assert run_study(study).summary["network_cost_usd"] == pytest.approx(50_000)


def test_a_price_list_of_ones_own(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        path_of(DEFAULT).read_text().replace("[100 Gbit/s, 600]", "[100 Gbit/s, 601]")
    )
    (own,) = resolve(load(priced(tmp_path, "mine.yaml"))).scenarios
    (shipped,) = resolve(load(priced(tmp_path))).scenarios
    assert network_cost(own).total == pytest.approx(network_cost(shipped).total + 16)


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "says"),
    [
        ("prices: PRICES", "prices: ethernet_2062", 4, "cluster.prices", "did you mean 'ethernet_2026'"),
        ("prices: PRICES", "price_factors: {optics: 2}", 4, "cluster.price_factors", "or a budget_usd"),
        ("prices: PRICES", "budget_usd: 12", 4, "cluster.budget_usd", "expected at least"),
        ("prices: PRICES", "price_factors: {fibre: 2}", 4, "cluster.price_factors.fibre", "the unknown key"),
        ("k: 4", "k: 5", 3, "cluster.topology.k", "an even number"),
    ],
)
def test_wrong_prices_are_told_with_their_place(tmp_path, old, new, line, field, says):
    file = tmp_path / "wrong.yaml"
    file.write_text(PRICED.replace(old, new).replace("PRICES", DEFAULT))
    with pytest.raises(InputError) as caught:
        resolve(load(file))
    errors = caught.value.errors if isinstance(caught.value, InputErrors) else [caught.value]
    (error,) = [one for one in errors if one.field == field]
    assert (error.file, error.line) == (str(file), line)
    assert says in str(error)
