"""Image data sets in the files they are published in: IDX (MNIST and its kin) and CIFAR-10's binary files.

Formats: LeCun, Cortes, Burges, "The MNIST database"; Krizhevsky, "Learning multiple layers of features from
tiny images", 2009 (the binary version: a byte for the class, then red, green and blue, 32 x 32 each).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.user_files import MOST_BYTES, content

__all__ = ["ImageSet", "cifar10_set", "mnist_set", "read_idx"]

Images = NDArray[np.uint8]
CLASSES = 10
_UBYTE = 8  # type of numbers in an IDX file: one byte, without sign
_CIFAR_SIDE, _CIFAR_RECORD = 32, 1 + 3 * 32 * 32


class ImageSet(NamedTuple):
    """Images (samples, channels, side, side) with pixels 0 .. 255, and their classes (samples,)."""

    train: Images
    train_labels: Images
    test: Images
    test_labels: Images


def read_idx(path: Path) -> Images:
    """An array of bytes from an IDX file.

    Raises:
        ValueError: it is no such file, or its length is not what its head says.
    """
    found = content(path)
    if len(found) < 4 or found[:2] != b"\0\0" or found[2] != _UBYTE or not 1 <= found[3] <= 3:
        raise ValueError(f"{path} is no IDX file of bytes: it begins with {found[:4].hex(' ') or 'nothing'}")
    head = 4 + 4 * found[3]
    if len(found) < head:
        raise ValueError(f"{path} ends within its head, after {len(found)} bytes")
    shape = struct.unpack(f">{found[3]}I", found[4:head])
    if prod(shape) != len(found) - head or prod(shape) > MOST_BYTES:
        raise ValueError(
            f"{path} says {' x '.join(map(str, shape))} numbers and has {len(found) - head} bytes of them"
        )
    return np.frombuffer(found, np.uint8, offset=head).reshape(shape)


def _named(folder: Path, stem: str, dimensions: int) -> Path:
    """The IDX file of that name, as it is spelled here or there, packed or not."""
    ends = [f"{dot}idx{dimensions}-ubyte{packed}" for dot in "-." for packed in ("", ".gz")]
    for name in (stem + end for end in ends):
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"there is no {stem}-idx{dimensions}-ubyte (or .gz) in {folder}")


def _pair(folder: Path, stem: str) -> tuple[Images, Images]:
    images_path, labels_path = _named(folder, f"{stem}-images", 3), _named(folder, f"{stem}-labels", 1)
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.ndim != 3 or images.shape[1] != images.shape[2]:
        raise ValueError(f"{images_path} holds {images.shape}, expected square images")
    if labels.shape != images.shape[:1] or not len(labels):
        raise ValueError(f"{labels_path} holds {labels.shape} labels for {len(images)} images")
    _classes(labels, labels_path)
    return images[:, None], labels


def _classes(labels: Images, path: Path) -> None:
    if labels.max(initial=0) >= CLASSES:
        raise ValueError(f"{path} has a class {labels.max()}, expected 0 to {CLASSES - 1}")


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What tells whether anything in a folder has changed."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {str(folder)!r}")
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def mnist_set(folder: str) -> ImageSet:
    """MNIST, or a data set in its form: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-...`.

    Raises:
        ValueError: a file is missing, damaged, or not what it should be.
    """
    return _mnist(Path(folder), _stamp(Path(folder)))


@lru_cache(maxsize=2)
def _mnist(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> ImageSet:
    train, test = _pair(folder, "train"), _pair(folder, "t10k")
    if train[0].shape[1:] != test[0].shape[1:]:
        raise ValueError(f"{folder} has test images of another size than its training images")
    return ImageSet(*train, *test)


def cifar10_set(folder: str) -> ImageSet:
    """CIFAR-10: `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`.

    Raises:
        ValueError: a file is missing, damaged, or not what it should be.
    """
    return _cifar10(Path(folder), _stamp(Path(folder)))


@lru_cache(maxsize=2)
def _cifar10(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> ImageSet:
    train = [_records(folder / f"data_batch_{number}.bin") for number in range(1, 6)]
    images, labels = (np.concatenate(part) for part in zip(*train, strict=True))
    return ImageSet(images, labels, *_records(folder / "test_batch.bin"))


def _records(path: Path) -> tuple[Images, Images]:
    if not path.is_file():
        raise ValueError(f"there is no {path.name} in {path.parent}")
    found = content(path)
    if not found or len(found) % _CIFAR_RECORD:
        raise ValueError(f"{path} has {len(found)} bytes, expected a multiple of {_CIFAR_RECORD}")
    records = np.frombuffer(found, np.uint8).reshape(-1, _CIFAR_RECORD)
    _classes(records[:, 0], path)
    return records[:, 1:].reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE), records[:, 0]
