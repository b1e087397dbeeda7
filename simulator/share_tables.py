"""The tables of the fair-share solver: one row an activity, a link, a pair of the two. Plain numpy.

They are few structured arrays because compiled code is handed all of them at each call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]  # a structured array, or a list of row numbers

TIE = 1e-12  # relative: rates and times as near as this count as one
NOBODY, SHARED = -1, -2  # owners of a link that are not an activity
OWN, FREE, GONE = -1, -2, -3  # limiters that are not a link: its own bound; none yet; it has left

ACTIVITY = np.dtype(
    [
        ("rate", "f8"),  # bytes/s per unit of weight
        ("bound", "f8"),  # its rate with nobody else there
        ("limiter", "i8"),  # the link that limits it, or OWN, FREE, GONE
        ("remaining", "f8"),  # bytes left at `since`
        ("since", "f8"),  # when its rate last changed
        ("finish", "f8"),
        ("begin", "f8"),
        ("before", "f8"),  # its rate before this event
        ("top", "f8"),  # its highest rate so far
        ("first", "i8"),  # its first entry
        ("place", "i8"),  # in the heap of finish times; -1 if it has shared nothing so far
        ("touched", "i8"),
    ]
)
ENTRY = np.dtype(  # an activity on a shared link, in a list of each
    [
        ("weight", "f8"),
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
        ("key", "f8"),  # in the heap of links
        ("weight", "f8"),  # its owner's
        ("busy", "f8"),  # seconds with any user, up to `since`
        ("since", "f8"),
        ("peak", "f8"),  # highest load / capacity
        ("owner", "i8"),  # its sole user, or NOBODY, SHARED
        ("first", "i8"),  # its first entry
        ("users", "i8"),  # number of entries
        ("place", "i8"),  # in the heap of links, -1 outside
        ("marked", "i8"),
        ("seen", "i8"),
    ]
)
COUNTS = np.dtype(
    [
        ("due", "i8"),  # length of the heap of finish times
        ("heap", "i8"),  # length of the heap of links
        ("marked", "i8"),
        ("seen", "i8"),
        ("touched", "i8"),
        ("free", "i8"),  # first free entry
        ("room", "i8"),  # number of free entries
        ("handled", "i8"),  # links handled and rates changed since the beginning: the work done
        ("changed", "i8"),
    ]
)


class Tables(NamedTuple):
    """All of them. Lists have one row a purpose: heap, marked or touched, seen."""

    activities: Rows
    entries: Rows
    links: Rows
    activity_lists: Rows  # 0: heap of finish times, 1: touched
    link_lists: Rows  # 0: heap of links, 1: marked, 2: seen
    counts: Rows


def empty_tables(capacity: NDArray[np.float64]) -> Tables:
    """Tables for links of these capacities (bytes/s), with no room for activities yet."""
    links = np.zeros(len(capacity), LINK)
    links["capacity"] = capacity
    links["level"] = np.inf
    links["owner"] = NOBODY
    links["first"] = links["place"] = -1
    counts = np.zeros(1, COUNTS)
    counts["free"] = -1
    lists = np.zeros((2, 0), np.int64), np.zeros((3, len(capacity)), np.int64)
    return Tables(np.zeros(0, ACTIVITY), np.zeros(0, ENTRY), links, *lists, counts)


def with_activities(tables: Tables, room: int) -> Tables:
    """The same with room for so many activities."""
    old = len(tables.activities)
    activities = np.zeros(room, ACTIVITY)
    activities[:old] = tables.activities
    activities["first"][old:] = activities["place"][old:] = -1
    lists = np.zeros((2, room), np.int64)
    lists[:, :old] = tables.activity_lists
    return tables._replace(activities=activities, activity_lists=lists)


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
