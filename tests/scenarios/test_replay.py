"""The command `replay`: tables in, finish times out, and what is said about tables that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.replay import replay
from simulator.errors import InputError

LINKS = "link,bandwidth_bytes_per_s,latency_s\nup,1000,0.5\ndown,1000,0.25\n"
ROUTES = "flow,hop,link\na,1,down\na,0,up\nb,0,down\n"
FLOWS = "flow,src,dst,size_bytes,start_s\na,0,1,1000,0\nb,2,1,1000,0.5\n"


def run(
    folder: Path, links: str = LINKS, routes: str = ROUTES, flows: str = FLOWS
) -> list[tuple[str, float]]:
    for name, text in (("links", links), ("routes", routes), ("flows", flows)):
        (folder / f"{name}.csv").write_text(text)
    out = folder / "out.csv"
    done = replay(folder / "links.csv", folder / "routes.csv", folder / "flows.csv", out)
    header, *rows = out.read_text().splitlines()
    assert header == "flow,finish_s"
    finish = [(flow, float(time)) for flow, time in (row.split(",") for row in rows)]
    last = max((time for _, time in finish), default=0.0)
    assert done == {"flows": len(finish), "out": str(out), "last_finish_s": last}
    return finish


def test_latency_first_then_a_fair_part(tmp_path: Path) -> None:
    """Both use `down` from 0.75 s on: half of 1000 bytes/s each for 2 s."""
    assert run(tmp_path) == [("a", 2.75), ("b", 2.75)]


def test_weights(tmp_path: Path) -> None:
    """3 to 1 from 0.75 s: a ends after 1000/750 s; b has 2000/3 bytes left then, alone."""
    flows = FLOWS.replace("start_s", "start_s,weight").replace(",0\n", ",0,3\n").replace("0.5\n", "0.5,1\n")
    finish = dict(run(tmp_path, flows=flows))
    assert finish["a"] == pytest.approx(0.75 + 4 / 3, rel=1e-12)
    assert finish["b"] == pytest.approx(0.75 + 4 / 3 + 2 / 3, rel=1e-12)


def test_nothing_to_send_finishes_after_the_latency(tmp_path: Path) -> None:
    flows = "flow,src,dst,size_bytes,start_s\nb,2,1,0,1\na,7,7,1000,1\nc,3,3,5,1\n"
    assert run(tmp_path, flows=flows) == [("b", 1.25), ("a", 1.75), ("c", 1.0)]


def test_a_link_twice_on_a_route_counts_twice(tmp_path: Path) -> None:
    routes = "flow,hop,link\na,0,up\na,1,down\na,2,up\nb,0,down\n"
    flows = "flow,src,dst,size_bytes,start_s\na,0,1,1000,0\nb,1,1,0,0\n"
    assert run(tmp_path, routes=routes, flows=flows)[0] == ("a", 1.25 + 2.0)


def test_blank_lines_spaces_and_a_byte_order_mark(tmp_path: Path) -> None:
    flows = "\ufeff" + FLOWS.replace("a,0,1", " a , 0,1 ").replace("\nb", "\n\n,,,,\nb")
    assert run(tmp_path, flows=flows) == [("a", 2.75), ("b", 2.75)]


def test_no_flows(tmp_path: Path) -> None:
    assert run(tmp_path, routes="flow,hop,link\n", flows="flow,src,dst,size_bytes,start_s\n") == []


def test_on_a_topology(tmp_path: Path) -> None:
    """Hosts by number on the shipped star: 2.875 GB/s a port, 2 us a link; two share host 1's."""
    flows, out = tmp_path / "flows.csv", tmp_path / "out.csv"
    flows.write_text(
        "flow,src,dst,size_bytes,start_s\na,0,1,2875000000,0\nb,2,1,2875000000,0\nc,3,3,5,1\nd,0,1,0,1\n"
    )
    replay(None, None, flows, out, topology="four_by_four")
    finish = [float(row.split(",")[1]) for row in out.read_text().splitlines()[1:]]
    assert finish == pytest.approx([2.000004, 2.000004, 1.0, 1.000004], rel=1e-12)


WRONG = [
    ("links", "up,1000", "up,0", "links.csv:2: bandwidth_bytes_per_s", "a finite number above 0"),
    ("links", "up,1000", "up,1e999", "links.csv:2: bandwidth_bytes_per_s", "a finite number above 0"),
    ("links", "up,1000", "up,10 Gbit/s", "links.csv:2: bandwidth_bytes_per_s", "found '10 Gbit/s'"),
    ("links", "up,1000", "up,1_000", "links.csv:2: bandwidth_bytes_per_s", "found '1_000'"),
    ("links", "0.25", "-0.25", "links.csv:3: latency_s", "a finite number, 0 or more"),
    ("links", "0.25", "nan", "links.csv:3: latency_s", "a finite number, 0 or more"),
    ("links", "down", "up", "links.csv:3: link", "each link once"),
    ("links", LINKS, "", "links.csv:1", "a header link,"),
    ("links", ",latency_s", "", "links.csv:1: latency_s", "a column latency_s"),
    ("links", "down,1000,0.25", "down,1000", "links.csv:3", "3 cells"),
    ("routes", "b,0,down", "b,0,dwon", "routes.csv:4: link", "did you mean 'down'?"),
    ("routes", "b,0,down", "c,0,down", "routes.csv:4: flow", "a flow of flows.csv"),
    ("routes", "a,1,down", "a,0,down", "routes.csv:3: hop", "each hop of flow a once"),
    ("routes", "a,1,down", "a,2,down", "routes.csv: hop", "hops 0 to 1 of flow a"),
    ("routes", "a,1,down", "a,1.0,down", "routes.csv:2: hop", "a whole number"),
    ("routes", "b,0,down\n", "", "flows.csv:3: flow", "its route in routes.csv"),
    ("flows", "b,2,1,1000", "b,2,1,-1", "flows.csv:3: size_bytes", "0 or more"),
    ("flows", "b,2,1,1000,0.5", "b,2,1,1000,", "flows.csv:3: start_s", "found ''"),
    ("flows", "b,2", "a,2", "flows.csv:3: flow", "first in line 2"),
    ("flows", "b,2", ",2", "flows.csv:3: flow", "a name"),
    ("flows", "start_s", "start_s,wieght", "flows.csv:1: wieght", "did you mean 'weight'?"),
    ("flows", "src,dst", "src,src", "flows.csv:1: src", "each column once"),
    ("flows", "b,2", '"b,2', "flows.csv:3", "a line of CSV"),
]


@pytest.mark.parametrize(("table", "right", "wrong", "place", "said"), WRONG)
def test_what_is_wrong_is_said_with_its_place(
    table: str, right: str, wrong: str, place: str, said: str, tmp_path: Path
) -> None:
    tables = {"links": LINKS, "routes": ROUTES, "flows": FLOWS}
    assert right in tables[table]
    tables[table] = tables[table].replace(right, wrong, 1)
    with pytest.raises(InputError) as caught:
        run(tmp_path, **tables)
    assert str(caught.value).startswith(f"{tmp_path}/{place}: ")
    assert said in str(caught.value)
    assert not (tmp_path / "out.csv").exists()


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    run(tmp_path)
    links, routes, flows, out = (tmp_path / f"{name}.csv" for name in ("links", "routes", "flows", "out"))
    with pytest.raises(InputError, match="a file that can be read"):
        replay(tmp_path / "none.csv", routes, flows, out)
    with pytest.raises(InputError, match="a file that can be read"):
        replay(tmp_path, routes, flows, out)
    with pytest.raises(InputError, match="a file that can be written"):
        replay(links, routes, flows, tmp_path / "none" / "out.csv")
    links.write_bytes(b"link,bandwidth_bytes_per_s,latency_s\n\xff,1,1\n")
    with pytest.raises(InputError, match="text in UTF-8"):
        replay(links, routes, flows, out)


@pytest.mark.parametrize(
    ("links", "routes", "topology", "said"),
    [
        (False, False, None, "expected --links and --routes, or --topology"),
        (True, False, None, "expected --links and --routes, or --topology"),
        (True, True, "four_by_four", "expected either --topology"),
        (False, False, "four_by_fuor", "did you mean 'four_by_four'?"),
        (False, False, "none.yaml", "none.yaml"),
    ],
)
def test_one_network_is_given(
    links: bool, routes: bool, topology: str | None, said: str, tmp_path: Path
) -> None:
    flows = tmp_path / "flows.csv"
    flows.write_text(FLOWS)
    with pytest.raises(InputError) as caught:
        replay(
            flows if links else None,
            flows if routes else None,
            flows,
            tmp_path / "out.csv",
            topology=topology,
        )
    assert said in str(caught.value)


@pytest.mark.parametrize("host", ["4", "-1", "h1", "1.0"])
def test_hosts_of_a_topology_are_numbers(host: str, tmp_path: Path) -> None:
    flows = tmp_path / "flows.csv"
    flows.write_text(FLOWS.replace("a,0,1", f"a,{host},1"))
    with pytest.raises(InputError, match=r"flows\.csv:2: src: .* a host number, 0 to 3"):
        replay(None, None, flows, tmp_path / "out.csv", topology="four_by_four")
