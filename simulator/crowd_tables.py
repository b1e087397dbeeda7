"""Steered activities in the fair-share tables, compiled: what others leave them, and the course they set."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.compiled import compiled
from simulator.contention import set_free
from simulator.min_tree import put
from simulator.ripple import named
from simulator.share_tables import END, Rows, Tables
from simulator.steering import NOBODY, SEVERAL

PRESENT, AWAY, BUSY = 0, 1, 2  # what those that pause do: as now; nothing; send as fast as they can


@compiled
def _room(t: Tables, link: Any, a: int, mine: float, state: int) -> Any:  # float
    """The rate x of each of `mine` members that may take all they get: x mine + sum(edges min(limit, x)) = C.

    An activity of weight w moves its `edges` members at w rate / edges each: their limit. From the lowest
    possible level upwards; ends when nobody else is below it.
    """
    level = 0.0
    while True:
        taken, share = 0.0, mine
        e = link.first
        while e != END:
            entry = t.entries[e]
            e = entry.next
            other = t.activities[entry.activity]
            limit = other.rate * entry.weight / entry.edges
            in_step = other.pauses > 1 and other.pauses == t.activities[a].pauses
            if in_step or (other.pauses > 0 and state == BUSY):
                limit = np.inf
            elif other.pauses > 0 and state == AWAY:
                continue
            if entry.activity == a:
                continue
            if limit < level:
                taken += entry.edges * limit
            else:
                share += entry.edges
        found = (link.capacity - taken) / share
        if found <= level:
            return level
        level = found


@compiled
def _who(t: Tables, link: Any, a: int) -> int:
    """The one that pauses on a link, out of step with `a`; NOBODY or SEVERAL."""
    found, e = NOBODY, link.first
    while e != END:
        entry = t.entries[e]
        e = entry.next
        pauses = t.activities[entry.activity].pauses
        if entry.activity == a or pauses == 0 or (pauses > 1 and pauses == t.activities[a].pauses):
            continue
        found = entry.activity if found == NOBODY else SEVERAL
    return found


@compiled
def crowd(tables: Tables, a: int, links: Rows, who: Rows, rates: Rows) -> int:
    """The shared links of `a`; in the rows of `rates` what it could have with those that pause in each state.

    -> how many links. BUSY leaves no more than PRESENT, AWAY no less.
    """
    t = named(tables)
    n, e = 0, t.activities[a].first
    while e != END:
        entry = t.entries[e]
        e = entry.after
        link = t.links[entry.link]
        links[n], who[n] = entry.link, _who(t, link, a)
        present = _room(t, link, a, entry.edges, PRESENT)
        rates[PRESENT, n] = present
        rates[AWAY, n] = max(_room(t, link, a, entry.edges, AWAY), present)
        rates[BUSY, n] = min(_room(t, link, a, entry.edges, BUSY), present)
        n += 1
    return n


@compiled
def set_course(tables: Tables, a: int, bound: float, weights: Rows) -> None:
    """Activity `a` has another bound, and other weights on its shared links, in the order of `crowd`."""
    t = named(tables)
    set_free(t, a)
    t.activities[a].bound = bound
    n, e = 0, t.activities[a].first
    while e != END:
        entry = t.entries[e]
        e = entry.after
        t.links[entry.link].open += weights[n] - entry.weight
        entry.weight = weights[n]
        n += 1


@compiled
def set_remaining(tables: Tables, a: int, size: float, now: float) -> float:
    """Activity `a` has `size` bytes still to move, at the rate it has; -> the next finish of all."""
    t = named(tables)
    mine = t.activities[a]
    mine.remaining, mine.since = size, now
    put(t.finish, a, now + size / mine.rate)
    return float(t.finish[1])
