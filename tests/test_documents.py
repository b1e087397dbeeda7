"""Documents that run: doctests of all modules, the code blocks of README, the notebooks."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("simulator", "topologies", "calibration", "scenarios")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if path.name != "__main__.py"
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


def blocks(language: str) -> list[str]:
    """The code blocks of README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


def paceline(*arguments: str, cwd: Path) -> str:
    """What a command prints; it must succeed."""
    command = [sys.executable, "-m", "scenarios.cli", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_scenario_and_its_commands(tmp_path):
    names = [text.splitlines()[0].removeprefix("# ") for text in blocks("yaml")]
    for name, text in zip(names, blocks("yaml"), strict=True):
        (tmp_path / name).write_text(text)
    commands = [line.split("#")[0].split() for line in blocks("bash")[2].splitlines()]
    assert [command[0] for command in commands] == ["paceline"] * 4
    for command in commands:
        assert paceline(*command[1:], cwd=tmp_path)
    assert "36 runs" in paceline("sweep", "tune.yaml", "--dry-run", "--set", "stop={steps: 2}", cwd=tmp_path)


def test_readme_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert re.match(r"\d+\.\d+ ", capsys.readouterr().out)


def test_readme_has_the_two_commands_that_ci_runs():
    commands = [line for line in "".join(blocks("bash")).splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert "paceline run quickstart" in commands[0]
    assert "pytest" in commands[1]


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_notebooks_run(source, tmp_path):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    notebook = jupytext.read(source)
    shipped = jupytext.read(source.with_suffix(".ipynb"))
    assert [c.source for c in shipped.cells] == [c.source for c in notebook.cells], "make the .ipynb anew"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
