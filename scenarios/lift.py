"""Makes a scenario stand on its own: presets spelled out, profiles named, paths of data absolute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.presets import expanded
from simulator.yaml_source import Node


def lifted(node: Node) -> Node:
    """`node`, a scenario, with every inline `devices.profile` moved to `profiles`, and no preset."""
    node = expanded(node)
    profiles: dict[str, Node] = {}
    given = node.get("profiles")
    if given is not None and isinstance(given.content, dict):
        profiles.update(given.content)
    found = _lift(node, profiles)
    if not profiles or not isinstance(found.content, dict):
        return found
    place = given or node
    if given is not None and not isinstance(given.content, dict):
        return found
    content = {**found.content, "profiles": Node(profiles, place.at, place.key)}
    return Node(content, found.at, found.key)


def _lift(node: Node, profiles: dict[str, Node]) -> Node:
    if isinstance(node.content, list):
        return Node([_lift(item, profiles) for item in node.content], node.at, node.key)
    if not isinstance(node.content, dict):
        return node
    content = {key: _lift(value, profiles) for key, value in node.content.items()}
    devices, file = content.get("devices"), content.get("file")
    profile = devices.get("profile") if devices else None
    if devices is not None and profile is not None and isinstance(profile.content, dict):
        name = Node(_named(profile, profiles), profile.at, profile.key)
        content["devices"] = Node({**devices.content, "profile": name}, devices.at, devices.key)
    if file is not None and _text(content.get("kind")) == "empirical" and isinstance(file.content, str):
        content["file"] = Node(_absolute(file), file.at, file.key)
    return Node(content, node.at, node.key)


def _text(node: Node | None) -> Any:
    return node.content if node is not None else None


def _named(profile: Node, profiles: dict[str, Node]) -> str:
    """The name under which `profile` is in `profiles`; puts it there if it is new."""
    own = _text(profile.get("name")) or _text(profile.get("kind"))
    base = own if isinstance(own, str) and own else "device"
    for number in range(1, len(profiles) + 2):
        name = base if number == 1 else f"{base}_{number}"
        if name not in profiles:
            profiles[name] = profile
        if profiles[name].data == profile.data:
            return name
    raise AssertionError("one of n + 1 names is free")


def _absolute(file: Node) -> str:
    """A path relative to the file that names it, made absolute."""
    folder = Path(file.at.file).parent if file.at.file and file.at.line else Path()
    try:
        return str((folder / file.content).resolve())
    except (OSError, ValueError):  # a NUL in the name: the reader says so
        return str(file.content)
