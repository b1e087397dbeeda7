"""Shipped device profiles, one YAML file each with sources and dates; their aliases; reading of files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from simulator.devices import ConstantDevice, DeviceProfile, Profile
from simulator.errors import InputError
from simulator.spec import Spec
from simulator.validation import did_you_mean, validate
from simulator.yaml_source import read

ALIASES = {
    "a100": "a100_80gb_sxm",
    "a100_80gb": "a100_80gb_sxm",
    "ampere": "a100_80gb_sxm",
    "h100": "h100_80gb_sxm",
    "h100_80gb": "h100_80gb_sxm",
}

_FOLDER = Path(__file__).parent


class ProfileFile(Spec):
    """A profile file: the version of the format, and the profile."""

    paceline: int
    profile: Profile


def names() -> tuple[str, ...]:
    """Of the shipped profiles, without aliases."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load(name: str, folder: str | Path = ".") -> DeviceProfile | ConstantDevice:
    """A shipped profile, an alias, or a FILE.yaml (relative to `folder`).

    Raises:
        InputError: no such profile, or a file that holds none.
    """
    if name.endswith((".yaml", ".yml")):
        return read_profile(Path(folder) / name)
    known = names()
    if (resolved := ALIASES.get(name, name)) not in known:
        hint = did_you_mean(name, [*known, *ALIASES]) or "or a FILE.yaml"
        raise InputError(f"a device profile: {', '.join(known)}", repr(name), "profile", hint)
    return _shipped(resolved)


@lru_cache(maxsize=64)
def _shipped(name: str) -> DeviceProfile | ConstantDevice:
    return read_profile(_FOLDER / f"{name}.yaml")


def read_profile(path: str | Path) -> DeviceProfile | ConstantDevice:
    """The profile in a file.

    Raises:
        InputError: what is wrong, with file, line and column.
    """
    first, *more = read(path)
    if more:
        raise more[0].error((), expected="one document in a profile file", found="another one")
    file = validate(ProfileFile, first)
    if file.paceline != 1:
        raise first.error(("paceline",), expected="1", found=str(file.paceline))
    return file.profile
