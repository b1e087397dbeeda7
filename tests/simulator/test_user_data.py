"""Data from the user's disk: what is read, what is refused and how it is told."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from simulator import user_files
from simulator.maths.torch_maths import TorchMaths
from simulator.optimizers import Momentum
from simulator.problems import Cifar10, Mnist, Problem, ProblemSpec, Svmlight
from simulator.problems.digits import digits
from simulator.problems.image_files import read_idx
from simulator.problems.svmlight_rows import read_svmlight
from simulator.streams import Draws


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


def digits_as_mnist(folder: Path, packed: bool = False) -> None:
    """scikit-learn's digits in MNIST's files."""
    data = digits()
    for stem, images, labels in (
        ("train", data.train, data.train_labels),
        ("t10k", data.test, data.test_labels),
    ):
        pixels = np.round(images * 255).reshape(-1, 8, 8)
        if packed:
            (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels), mtime=0))
            (folder / f"{stem}-labels.idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels), mtime=0))
        else:
            (folder / f"{stem}-images.idx3-ubyte").write_bytes(idx(pixels))
            (folder / f"{stem}-labels-idx1-ubyte").write_bytes(idx(labels))


def cifar(folder: Path, each: int = 20) -> np.ndarray:
    """Random images in CIFAR-10's files, one colour brighter by class; gives the first file's records."""
    generator = np.random.default_rng(0)
    first = np.zeros(0)
    for name in [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]:
        records = generator.integers(0, 200, (each, 3073)).astype(np.uint8)
        records[:, 0] = np.arange(each) % 3
        for row in records:
            first_pixel = 1 + 1024 * int(row[0])
            row[first_pixel : first_pixel + 1024] += 55
        (folder / name).write_bytes(records.tobytes())
        first = first if len(first) else records
    return first


def maths(problem: Problem) -> TorchMaths:
    return TorchMaths(problem, 2, Draws(1), 1.0, "float32")


def learned(problem: Problem, steps: int, lr: float) -> float:
    m, optimizer = maths(problem), Momentum(lr=lr)
    x, state = m.initial(), optimizer.initial()
    for step in range(steps):
        x, state = optimizer.apply(x, m.cohort_mean(m.gradients(x, step)), state)  # type: ignore[assignment]
    told = m.evaluate(x, "test")
    assert told.accuracy is not None
    return told.accuracy


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "network", [{"kind": "mlp", "hidden": [32]}, {"kind": "cnn", "channels": 4, "depth": 2}]
)
def test_mnist_files_are_read_and_learned(tmp_path: Path, packed: bool, network: dict[str, Any]) -> None:
    digits_as_mnist(tmp_path, packed)
    problem = Mnist.model_validate({"folder": str(tmp_path), "network": network, "n_test": 100})
    assert (problem.samples, problem.train_size(4)) == (1437, 1437)
    assert sum(layer.parameters for layer in problem.layers()) == problem.parameters
    assert maths(problem).initial().data.shape == (problem.parameters,)
    assert problem.labels().tolist() == digits().train_labels.tolist()
    assert learned(problem, 80, 0.05) > 0.85


def test_cifar_files_are_read_and_learned(tmp_path: Path) -> None:
    records = cifar(tmp_path)
    problem = Cifar10.model_validate({"folder": str(tmp_path), "network": {"kind": "cnn", "channels": 4}})
    there = problem.files()
    assert (there.train.shape, there.test.shape) == ((100, 3, 32, 32), (20, 3, 32, 32))
    red, blue = (
        records[7][1 : 1 + 32],
        records[7][1 + 2048 : 1 + 2048 + 32],
    )  # first lines of the eighth image
    assert (there.train[7, 0, 0] == red).all()
    assert (there.train[7, 2, 0] == blue).all()
    assert there.train_labels[:4].tolist() == [0, 1, 2, 0]
    assert learned(problem, 40, 0.05) > 0.9


def test_published_sizes(tmp_path: Path) -> None:
    """A dense network on MNIST's shape: 784 x 128 + 128 + 128 x 10 + 10."""
    for stem in ("train", "t10k"):
        (tmp_path / f"{stem}-images-idx3-ubyte").write_bytes(idx(np.zeros((3, 28, 28))))
        (tmp_path / f"{stem}-labels-idx1-ubyte").write_bytes(idx(np.arange(3)))
    problem = Mnist.model_validate({"folder": str(tmp_path), "network": {"kind": "mlp"}})
    assert problem.parameters == 101_770


def test_paths_are_relative_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    digits_as_mnist(tmp_path / "data")
    adapter: TypeAdapter[Problem] = TypeAdapter(ProblemSpec)
    problem = adapter.validate_python({"kind": "mnist", "folder": "data"}, context={"folder": str(tmp_path)})
    assert isinstance(problem, Mnist)
    assert problem.folder == str(tmp_path / "data")
    assert adapter.validate_python(problem.model_dump(mode="json")) == problem


@pytest.mark.parametrize(
    ("name", "spoilt", "message"),
    [
        ("train-images.idx3-ubyte", b"", "is no IDX file of bytes: it begins with nothing"),
        ("train-images.idx3-ubyte", b"\x80\x04\x95 pickled", "begins with 80 04 95 20"),
        ("train-images.idx3-ubyte", struct.pack(">BBBB", 0, 0, 8, 3) + b"\0\0", "ends within its head"),
        ("train-images.idx3-ubyte", struct.pack(">BBBB3I", 0, 0, 8, 3, 9, 8, 8) + bytes(64), "has 64 bytes"),
        (
            "train-images.idx3-ubyte",
            struct.pack(">BBBB3I", 0, 0, 8, 3, 2**31, 2**31, 2**31),
            "and has 0 bytes",
        ),
        ("train-images.idx3-ubyte", idx(np.zeros((1437, 8, 4))), "expected square images"),
        ("train-labels-idx1-ubyte", idx(np.zeros(7)), r"\(7,\) labels for 1437 images"),
        ("train-labels-idx1-ubyte", idx(np.full(1437, 10)), "has a class 10, expected 0 to 9"),
        ("t10k-images.idx3-ubyte", idx(np.zeros((360, 9, 9))), "test images of another size"),
        ("t10k-images.idx3-ubyte", None, "there is no t10k-images-idx3-ubyte"),
    ],
)
def test_damaged_mnist_files_are_told(tmp_path: Path, name: str, spoilt: bytes | None, message: str) -> None:
    digits_as_mnist(tmp_path)
    (tmp_path / name).unlink() if spoilt is None else (tmp_path / name).write_bytes(spoilt)
    with pytest.raises(ValidationError, match=message):
        Mnist(folder=str(tmp_path))


def test_damaged_gzip_and_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gzip.compress(idx(np.zeros((100, 8, 8))), mtime=0)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    for spoilt in (whole[:-9], b"not gzip at all", whole[:20] + b"\xff\xff" + whole[22:]):
        path.write_bytes(spoilt)
        with pytest.raises(ValueError, match="cannot be read"):
            read_idx(path)
    path.write_bytes(whole)
    monkeypatch.setattr(user_files.content, "__defaults__", (1000,))
    with pytest.raises(ValueError, match="more than the 1000 bytes"):
        read_idx(path)


@given(st.binary(max_size=64))
def test_any_bytes_are_an_array_or_a_message(tmp_path_factory: pytest.TempPathFactory, found: bytes) -> None:
    path = tmp_path_factory.mktemp("idx") / "x"
    path.write_bytes(found)
    message = ""
    try:
        assert read_idx(path).size <= 64
    except ValueError as error:
        message = str(error)
    assert not message or str(path) in message


@pytest.mark.parametrize(
    ("name", "spoilt", "message"),
    [
        ("data_batch_3.bin", None, "there is no data_batch_3.bin"),
        ("test_batch.bin", bytes(3072), "3072 bytes, expected a multiple of 3073"),
        ("test_batch.bin", b"", "0 bytes, expected a multiple"),
        ("data_batch_1.bin", b"\x0a" + bytes(3072), "has a class 10"),
    ],
)
def test_damaged_cifar_files_are_told(tmp_path: Path, name: str, spoilt: bytes | None, message: str) -> None:
    cifar(tmp_path, each=2)
    (tmp_path / name).unlink() if spoilt is None else (tmp_path / name).write_bytes(spoilt)
    with pytest.raises(ValidationError, match=message):
        Cifar10(folder=str(tmp_path))


def test_wrong_folders_and_counts(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="there is no folder"):
        Mnist(folder=str(tmp_path / "nowhere"))
    digits_as_mnist(tmp_path)
    with pytest.raises(ValidationError, match="n_samples: 1438, expected at most the 1437"):
        Mnist(folder=str(tmp_path), n_samples=1438)


# svmlight


def two_classes(path: Path, n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n, 30)) * (generator.random((n, 30)) < 0.3)
    y = np.where(x @ np.linspace(-2, 2, 30) + 0.1 * generator.standard_normal(n) > 0, 2.0, 1.0)
    dump_svmlight_file(x, y, str(path), zero_based=False, comment="made for a test")
    return x, y


def test_svmlight_is_read_as_scikit_learn_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "train.svm"
    two_classes(path)
    ours = read_svmlight(str(path))
    x, y = load_svmlight_file(str(path), zero_based=False)
    dense = np.zeros(x.shape)
    for row, (columns, values) in enumerate(zip(ours.columns, ours.values, strict=True)):
        np.add.at(dense[row], columns, values)
    assert np.array_equal(dense, x.toarray())
    assert np.array_equal(ours.targets, y)
    assert ours.entries == x.nnz
    packed = tmp_path / "train.svm.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert np.array_equal(read_svmlight(str(packed)).values, ours.values)


def test_svmlight_is_learned_and_tested_on_other_samples(tmp_path: Path) -> None:
    two_classes(tmp_path / "train.svm")
    two_classes(tmp_path / "test.svm", seed=1)
    problem = Svmlight(
        file=str(tmp_path / "train.svm"), test_file=str(tmp_path / "test.svm"), metric="duality_gap", l2=1e-3
    )
    assert (problem.parameters, problem.samples) == (30, 400)
    assert learned(problem, 150, 0.5) > 0.9
    m = maths(problem)
    x = m.initial()
    # At 0 the gap is P(0) - D: the same formula on different samples.
    assert m.evaluate(x, "train").loss != m.evaluate(x, "test").loss
    assert m.evaluate(x, "test").accuracy != m.evaluate(x, "train").accuracy


def test_least_squares_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r.svm"
    path.write_text("1.5 1:1\n-2 2:1\n\n# nothing\n0.5 1:1 2:1\n")
    problem = Svmlight(file=str(path), loss="squared", l2=0.0, batch="full", features=5)
    m = TorchMaths(problem, 1, Draws(1), 1.0, "float64")
    slope = m.gradient(m.initial(), 0, 0).data
    assert torch.allclose(slope, torch.tensor([-2.0 / 3, 1.5 / 3, 0, 0, 0], dtype=torch.float64))
    assert problem.metrics == ("loss",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n1 2;3\n", r":2: found '2;3', expected index:value"),
        ("1 1:2\n-1 2:x\n", r":2: found 'x', expected a number"),
        ("yes 1:2\n", r":1: found 'yes', expected a number"),
        ("1 1:nan\n", r":1: found 'nan', expected a finite number"),
        ("1 1:1_0\n", r":1: found '1_0', expected a number"),
        ("1 0:1\n", r":1: found index 0, expected indices from 1"),
        ("1 3:1 2:1\n", r":1: expected indices that rise"),
        ("1 qid:3 2:1\n", r":1: found 'qid:3', expected index:value with a whole index"),
        ("1 99999999:1\n", r"expected fewer than 67108864"),
        ("1 9999999999:1\n", r":1: found '9999999999:1', expected index:value"),
        ("# nothing\n", "has no samples"),
        ("1 1:1\n2 1:1\n3 1:1\n", "found 3 different labels"),
        ("1 1:1\n", "found 1 different labels"),
    ],
)
def test_wrong_svmlight_files_are_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.svm"
    path.write_text(text)
    with pytest.raises(ValidationError, match=message):
        Svmlight(file=str(path))


def test_wrong_svmlight_specs_are_told(tmp_path: Path) -> None:
    train, other = tmp_path / "a.svm", tmp_path / "b.svm"
    train.write_text("1 1:1\n2 3:1\n")
    other.write_text("3 1:1\n")
    with pytest.raises(ValidationError, match=r"features: 2, expected at least 3"):
        Svmlight(file=str(train), features=2)
    with pytest.raises(ValidationError, match=r"found label 3.0 in .*b.svm"):
        Svmlight(file=str(train), test_file=str(other))
    with pytest.raises(ValidationError, match="there is no file"):
        Svmlight(file=str(tmp_path / "none.svm"))


@given(st.text(alphabet="0123 :.-#\nexn", max_size=40))
def test_any_text_is_samples_or_a_message(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("svm") / "x"
    path.write_text(text)
    message = ""
    try:
        rows = read_svmlight(str(path))
        assert np.isfinite(rows.values).all()
        assert np.isfinite(rows.targets).all()
    except ValueError as error:
        message = str(error)
    assert not message or str(path) in message
