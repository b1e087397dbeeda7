"""The books of contended links, compiled: who uses them, who limits whom, how far they are from full.

Per shared link `taken` is what the activities use that something else limits, `open` the weight of the
others. The two are kept up to date as limits and rates change, and give a lower bound of the link's level at
once; each search for the level sums them up anew, so that rounding does not pile up.
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled
from simulator.share_tables import END, FREE, OUTSIDE, TIE, Tables


@compiled
def mark(t: Tables, link: int) -> None:
    """Note that rates may rise on this link, or that it may fill."""
    c, row = t.counts[0], t.links[link]
    if row.marked == OUTSIDE:
        row.marked = c.marked
        c.marked = link
    if row.seen == OUTSIDE:
        row.seen = c.seen
        c.seen = link


@compiled
def touch(t: Tables, a: int) -> None:
    """Remember the rate before the event, once."""
    c, row = t.counts[0], t.activities[a]
    if row.touched == OUTSIDE:
        row.touched = c.touched
        c.touched = a
        row.before = row.rate


@compiled
def fix(t: Tables, a: int, limiter: int, rate: float) -> None:
    """A link or its bound limits `a` from here on, at this rate: keep its links' `taken` and `open` right."""
    mine = t.activities[a]
    old_limiter, old_rate = mine.limiter, mine.rate
    mine.limiter, mine.rate = limiter, rate
    e = mine.first
    while e != END:
        entry = t.entries[e]
        row, weight = t.links[entry.link], entry.weight
        was_open = old_limiter == FREE or old_limiter == entry.link
        is_open = limiter == entry.link
        if was_open and not is_open:
            row.opens -= 1
            row.open = row.open - weight if row.opens else 0.0
            row.taken += weight * rate
        elif is_open and not was_open:
            row.opens += 1
            row.open += weight
            row.taken -= weight * old_rate
        elif not is_open:
            row.taken += weight * (rate - old_rate)
        e = entry.after


@compiled
def set_free(t: Tables, a: int) -> None:
    """Bounded by its own limit alone from here on: its shared links may fill earlier."""
    touch(t, a)
    mine = t.activities[a]
    limiter, e = mine.limiter, mine.first
    mine.limiter = FREE
    while e != END:
        entry = t.entries[e]
        row = t.links[entry.link]
        if limiter != FREE and limiter != entry.link:
            row.opens += 1
            row.open += entry.weight
            row.taken -= entry.weight * mine.rate
        mark(t, entry.link)
        e = entry.after


@compiled
def enter(t: Tables, a: int, link: int, weight: float) -> None:
    """An entry for this pair, at the head of both lists. The link is not what limits `a`."""
    entries, c, mine, theirs = t.entries, t.counts[0], t.activities[a], t.links[link]
    e = c.free
    c.free = entries[e].after
    c.room -= 1
    row = entries[e]
    row.weight, row.edges, row.activity, row.link = weight, weight, a, link
    row.next, row.previous, row.after, row.ahead = theirs.first, END, mine.first, END
    if theirs.first != END:
        entries[theirs.first].previous = e
    if mine.first != END:
        entries[mine.first].ahead = e
    theirs.first = mine.first = e
    theirs.users += 1
    if mine.limiter == FREE:
        theirs.opens += 1
        theirs.open += weight
    else:
        theirs.taken += weight * mine.rate


@compiled
def strike(t: Tables, e: int) -> None:
    """Take an entry out of both lists."""
    entries, c, row = t.entries, t.counts[0], t.entries[e]
    mine, theirs = t.activities[row.activity], t.links[row.link]
    if row.previous != END:
        entries[row.previous].next = row.next
    else:
        theirs.first = row.next
    if row.next != END:
        entries[row.next].previous = row.previous
    if row.ahead != END:
        entries[row.ahead].after = row.after
    else:
        mine.first = row.after
    if row.after != END:
        entries[row.after].ahead = row.ahead
    theirs.users -= 1
    if mine.limiter == FREE or mine.limiter == row.link:
        theirs.opens -= 1
        theirs.open = theirs.open - row.weight if theirs.opens else 0.0
    else:
        theirs.taken -= row.weight * mine.rate
    if not theirs.users:
        theirs.taken = 0.0
    row.after = c.free
    c.free = e
    c.room += 1


@compiled
def least_level(t: Tables, link: int) -> float:
    """A lower bound of the water level, at hand: as if nothing else limited the open ones."""
    row = t.links[link]
    if row.opens:
        return float(max((row.capacity - row.taken) / row.open, 0.0))
    return np.inf if row.taken <= row.capacity * (1 + TIE) else 0.0


@compiled
def water_level(t: Tables, link: int) -> float:
    """The water level L of sum(weight * min(limit, L)) = capacity; inf if the limits leave room.

    The limit of an activity is its bound, or its rate if another link holds it there. Newton's method on a
    concave function, from the left: it ends when no limit lies between two steps.
    """
    its, guess = t.links[link], least_level(t, link)
    if guess == np.inf:
        return np.inf
    while True:
        by_others = opened = taken = share = below = 0.0
        above = np.inf
        e = its.first
        while e != END:
            entry = t.entries[e]
            row, weight = t.activities[entry.activity], entry.weight
            is_open = (row.limiter == link) | (row.limiter == FREE)
            limit = row.bound if is_open else row.rate
            by_others += 0.0 if is_open else weight * limit
            opened += weight if is_open else 0.0
            held = limit < guess  # no branches on it: they would be guessed wrong
            taken += weight * limit if held else 0.0
            share += 0.0 if held else weight
            below = max(below, limit if held else 0.0)
            above = min(above, np.inf if held else limit)
            e = entry.next
        its.taken, its.open = by_others, opened
        if share == 0.0:
            return np.inf
        level = (its.capacity - taken) / share
        if below < level <= above:
            return float(level)
        if level <= guess:  # by rounding: the guess was the level
            return float(max(level, below))
        guess = level
