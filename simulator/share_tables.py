"""The tables of the fair-share solver: one row an activity, a link, a pair of the two. Plain numpy.

They are few structured arrays because compiled code is handed all of them at each call. Lists run through the
rows: a field names the next row, END is the last, OUTSIDE says that a row is not in the list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.fabric import FloatArray

Rows = NDArray[Any]  # a structured array, or row numbers

TIE = 1e-12
"""Relative: rates and times as near as this count as one."""
NOBODY, SHARED = -1, -2  # owners of a link that are not an activity
OWN, FREE, GONE = -1, -2, -3  # limiters that are not a link: its own bound; none yet; it has left
END, OUTSIDE = -1, -2

ACTIVITY = np.dtype(
    [
        ("rate", "f8"),  # bytes/s per unit of weight
        ("bound", "f8"),  # its rate with nobody else there
        ("limiter", "i8"),  # the link that limits it, or OWN, FREE, GONE
        ("first", "i8"),  # its first entry
        ("before", "f8"),  # its rate before this event
        ("touched", "i8"),  # list of those whose rate may have changed
        ("remaining", "f8"),  # bytes left at `since`
        ("since", "f8"),  # when its rate last changed
        ("begin", "f8"),
        ("top", "f8"),  # its highest rate so far
        ("pauses", "i8"),  # above 0: is there part of the time; above 1: in step with its team (`steering`)
    ]
)
ENTRY = np.dtype(  # an activity on a shared link, in a list of each
    [
        ("weight", "f8"),
        ("edges", "f8"),  # members that move side by side; the weight, unless steered
        ("activity", "i4"),
        ("link", "i4"),
        ("next", "i4"),  # in the link's list
        ("previous", "i4"),
        ("after", "i4"),  # in the activity's list, or in the list of free entries
        ("ahead", "i4"),
    ]
)
LINK = np.dtype(
    [
        ("capacity", "f8"),  # bytes/s
        ("level", "f8"),  # rate of the activities it limits, inf while it is not full
        ("taken", "f8"),  # bytes/s of the activities that something else limits
        ("open", "f8"),  # weight of the others, and their number
        ("opens", "i8"),
        ("first", "i8"),  # its first entry
        ("users", "i8"),  # number of entries
        ("marked", "i8"),  # list of those to be worked out
        ("seen", "i8"),  # list of those worked out in this event
        ("owner", "i8"),  # its sole user, or NOBODY, SHARED
        ("weight", "f8"),  # its owner's
        ("busy", "f8"),  # seconds with any user, up to `since`
        ("since", "f8"),
        ("peak", "f8"),  # highest load / capacity
    ]
)
COUNTS = np.dtype(
    [
        ("touched", "i8"),  # first of the list
        ("marked", "i8"),  # first of the list
        ("seen", "i8"),  # first of the list
        ("free", "i8"),  # first of the list of free entries
        ("room", "i8"),  # number of free entries
        ("handled", "i8"),  # links handled and rates changed since the beginning: the work done
        ("changed", "i8"),
    ]
)


class Tables(NamedTuple):
    """All of them, and two trees of minima (`min_tree`)."""

    activities: Rows
    entries: Rows
    links: Rows
    counts: Rows
    finish: FloatArray  # tree: when each activity will be done
    key: FloatArray  # tree: at which level each link is to be handled


def empty_tree(numbers: int) -> FloatArray:
    """A tree of minima with room for so many numbers, all keys inf."""
    return np.full(2 << max(numbers - 1, 0).bit_length(), np.inf)


def empty_tables(capacity: FloatArray) -> Tables:
    """Tables for links of these capacities (bytes/s), with no room for activities yet."""
    links = np.zeros(len(capacity), LINK)
    links["capacity"] = capacity
    links["level"] = np.inf
    links["owner"] = NOBODY
    links["first"] = END
    links["marked"] = links["seen"] = OUTSIDE
    counts = np.zeros(1, COUNTS)
    for name in ("touched", "marked", "seen", "free"):
        counts[name] = END
    trees = empty_tree(0), empty_tree(len(capacity))
    return Tables(np.zeros(0, ACTIVITY), np.zeros(0, ENTRY), links, counts, *trees)


def with_activities(tables: Tables, room: int) -> Tables:
    """The same with room for so many activities."""
    old = len(tables.activities)
    activities = np.zeros(room, ACTIVITY)
    activities[:old] = tables.activities
    activities["first"][old:] = END
    activities["touched"][old:] = OUTSIDE
    return tables._replace(activities=activities, finish=_grown(tables.finish, room))


def _grown(tree: FloatArray, room: int) -> FloatArray:
    """The same keys in a larger tree."""
    grown = empty_tree(room)
    leaves = len(grown) // 2
    grown[leaves : leaves + len(tree) // 2] = tree[len(tree) // 2 :]
    while leaves > 1:
        leaves //= 2
        below = grown[2 * leaves : 4 * leaves]
        grown[leaves : 2 * leaves] = np.minimum(below[::2], below[1::2])
    return grown


def with_entries(tables: Tables, room: int) -> Tables:
    """The same with room for so many entries; the new ones are free."""
    old = len(tables.entries)
    entries = np.zeros(room, ENTRY)
    entries[:old] = tables.entries
    entries["after"][old:] = np.arange(old + 1, room + 1)
    entries["after"][-1] = tables.counts["free"][0]
    tables.counts["free"] = old
    tables.counts["room"] += room - old
    return tables._replace(entries=entries)
