"""The ordered ripple: max-min fair rates kept up to date as activities come and go, compiled.

Only links that two or more activities use are looked at. Each has a *level*: the rate of the activities it
limits, inf while it is not full. An event marks the links of what came or went, and a heap handles marked
links in rising order of min(old level, new level), since a level depends on lower ones alone:

- new level <= old: *settle*. The link fixes its activities at the new level. Where a rate falls, the
  activity's other full links have room again and join the heap; settling only raises levels, so these are
  worked out when popped.
- new level > old: *release*. As the old level is passed, the link's activities are bounded by their own limit
  alone, and their links, which may now fill earlier, are worked out at once.

*Tie rule*: an activity within `TIE` of a level is settled with it, and a rate within `TIE` of its old value
stays: rounding must not travel through the network.

An activity's `bound` is the least of its cap and of capacity / weight over all its links, so a link of one
activity needs no entry: `owner` names its sole user. A second user makes the link *shared*, with an entry for
each; when one user is left the link is its own again. So an event costs what is contended, not the length of
a bundle's list of links.
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import borrowed, compiled
from simulator.contention import enter, fix, least_level, mark, set_free, strike, touch, water_level
from simulator.min_tree import first, key_of, put, put_leaf, renew
from simulator.share_tables import END, FREE, GONE, NOBODY, OUTSIDE, OWN, SHARED, TIE, Rows, Tables


@compiled
def _queue(t: Tables, link: int) -> None:
    """To be handled at min(old level, least new level)."""
    put(t.key, link, min(t.links[link].level, least_level(t, link)))


@compiled
def _queue_marked(t: Tables) -> None:
    c = t.counts[0]
    while c.marked != END:
        link = c.marked
        c.marked = t.links[link].marked
        t.links[link].marked = OUTSIDE
        _queue(t, link)


@compiled
def _refill(t: Tables, a: int, link: int) -> None:
    """The rate of `a` fell at `link`: its other full links are due, at their old level at the earliest."""
    e = t.activities[a].first
    while e != END:
        other = t.entries[e].link
        row = t.links[other]
        if other != link and row.level < np.inf and key_of(t.key, other) == np.inf:
            _queue(t, other)
        e = t.entries[e].after


@compiled
def _settle(t: Tables, link: int, level: float) -> None:
    """Fix the activities that this link limits at its new level."""
    t.links[link].level = level
    low = level * (1 - TIE)
    e = t.links[link].first
    while e != END:
        a = t.entries[e].activity
        e = t.entries[e].next
        row = t.activities[a]
        if row.limiter == FREE:
            rate, limiter = (row.bound, OWN) if row.bound < low else (level, link)
            if abs(rate - row.before) <= TIE * rate:
                rate = row.before
            fix(t, a, limiter, rate)
        elif row.limiter == link or row.rate >= low:
            if abs(level - row.rate) > TIE * level:
                touch(t, a)
                fix(t, a, link, level)
                _refill(t, a, link)
            elif row.limiter != link:
                fix(t, a, link, row.rate)


@compiled
def _release(t: Tables, link: int) -> None:
    """Let the activities that this link limits rise."""
    t.links[link].level = np.inf
    mark(t, link)
    e = t.links[link].first
    while e != END:
        a = t.entries[e].activity
        if t.activities[a].limiter == link:
            set_free(t, a)
        e = t.entries[e].next
    _queue_marked(t)


@compiled
def _apply_rate(t: Tables, a: int, now: float) -> float:
    """If the rate of `a` has changed: what it has moved; -> when the rest will be, NaN if unchanged."""
    row = t.activities[a]
    if row.limiter == FREE:
        fix(t, a, OWN, row.bound)
    if row.limiter == GONE or row.rate == row.before:
        return np.nan
    row.remaining = max(row.remaining - row.before * (now - row.since), 0.0)
    row.since = now
    row.top = max(row.top, row.rate)
    return float(now + row.remaining / row.rate)


@compiled
def _apply_rates(t: Tables, now: float) -> None:
    """New finish times where rates have changed; beyond `few` it is cheaper to renew the whole tree."""
    c, n, few = t.counts[0], 0, len(t.finish) >> 5
    while c.touched != END:
        a = c.touched
        c.touched = t.activities[a].touched
        t.activities[a].touched = OUTSIDE
        finish = _apply_rate(t, a, now)
        if finish == finish:
            n += 1
            if n < few:
                put(t.finish, a, finish)
            else:
                put_leaf(t.finish, a, finish)
    c.changed += n
    if n >= few:
        renew(t.finish)


@compiled
def _note_peaks(t: Tables) -> None:
    """Highest load / capacity of the links where rates may have risen."""
    c = t.counts[0]
    while c.seen != END:
        row = t.links[c.seen]
        c.seen = row.seen
        row.seen = OUTSIDE
        if row.level < np.inf:
            row.peak = 1.0
        else:
            row.peak = min(max(row.peak, row.taken / row.capacity), 1.0)


# Called from outside. The tables come as a plain tuple: numba unpacks it twice as fast as a named one.


@compiled
def named(tables: Tables) -> Tables:
    """The tables handed over as a plain tuple, without reference counts."""
    activities, entries, links, counts, finish, key = tables
    return Tables(
        borrowed(activities),
        borrowed(entries),
        borrowed(links),
        borrowed(counts),
        borrowed(finish),
        borrowed(key),
    )


@compiled
def _later(t: Tables, link: int, new: float) -> bool:
    """Whether the first link is not due yet: its level has risen since it was queued, to `new` at least."""
    key = min(t.links[link].level, new)
    if key <= t.key[1]:
        return False
    put(t.key, link, key)
    return first(t.key) != link


@compiled
def solve(tables: Tables, now: float) -> float:
    """Bring all rates up to date after `join`, `leave`, `rebound`; -> the next finish time, inf if none."""
    t = named(tables)
    c = t.counts[0]
    _queue_marked(t)
    while True:
        link = first(t.key)
        if link < 0:
            break
        new, highest = least_level(t, link), t.links[link].level * (1 + TIE)
        if _later(t, link, new):
            continue
        c.handled += 1
        if new <= highest:
            new = water_level(t, link)
            if _later(t, link, new):
                continue
        put(t.key, link, np.inf)
        if new <= highest:
            _settle(t, link, new)
        else:
            _release(t, link)
    _apply_rates(t, now)
    _note_peaks(t)
    return float(t.finish[1])


@compiled
def join(
    tables: Tables, a: int, links: Rows, weights: Rows, size: float, cap: float, begin: float, now: float
) -> None:
    """Activity `a` comes and takes its links; those in use become shared."""
    t = named(tables)
    mine = t.activities[a]
    mine.rate, mine.bound, mine.limiter = 0.0, cap, FREE
    mine.remaining, mine.since, mine.begin, mine.top, mine.pauses = size, now, begin, 0.0, 0
    touch(t, a)
    for i in range(len(links)):
        link = links[i]
        row = t.links[link]
        mine.bound = min(mine.bound, row.capacity / weights[i])
        if row.owner == NOBODY:
            row.owner, row.weight, row.since = a, weights[i], now
            continue
        if row.owner != SHARED:
            owner = row.owner
            row.peak = max(row.peak, min(row.weight * t.activities[owner].top / row.capacity, 1.0))
            enter(t, owner, link, row.weight)
            row.owner = SHARED
        enter(t, a, link, weights[i])
        mark(t, link)


@compiled
def _inherit(t: Tables, link: int) -> None:
    """A link with one user left becomes that one's own."""
    row = t.links[link]
    last = row.first
    heir = t.entries[last].activity
    row.owner, row.weight, row.level = heir, t.entries[last].edges, np.inf
    strike(t, last)
    if t.activities[heir].limiter == link:
        set_free(t, heir)


@compiled
def leave(tables: Tables, a: int, links: Rows, now: float) -> None:
    """Activity `a` gives its links back."""
    t = named(tables)
    mine = t.activities[a]
    for link in links:
        row = t.links[link]
        if row.owner == a:
            row.owner = NOBODY
            row.busy += now - row.since
            row.peak = max(row.peak, min(row.weight * mine.top / row.capacity, 1.0))
    while mine.first != END:
        link = t.entries[mine.first].link
        strike(t, mine.first)
        mark(t, link)
        if t.links[link].users == 1:
            _inherit(t, link)
    mine.limiter = GONE
    put(t.finish, a, np.inf)


@compiled
def rebound(tables: Tables, a: int, bound: float) -> None:
    """A link of `a` has another capacity, so `a` another bound."""
    t = named(tables)
    t.activities[a].bound = bound
    set_free(t, a)


@compiled
def due(tables: Tables, now: float, found: Rows) -> int:
    """Take out those that finish now, within `TIE` of their own duration, into `found`; -> how many."""
    t = named(tables)
    n = 0
    while True:
        a = first(t.finish)
        if a < 0 or t.finish[1] - now > TIE * (t.finish[1] - t.activities[a].begin):
            return n
        put(t.finish, a, np.inf)
        found[n] = a
        n += 1


@compiled
def adopt(tables: Tables, a: int, finish: float) -> None:
    """Activity `a`, whose row is filled in and which shares nothing, is among those that will finish."""
    put(named(tables).finish, a, finish)
