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

from simulator.indexed_heap import compiled, put, sink, take
from simulator.share_tables import FREE, GONE, NOBODY, OWN, SHARED, TIE, Rows, Tables


@compiled
def _mark(t: Tables, link: int) -> None:
    """Note that rates may rise on this link, or that it may fill."""
    c, row = t.counts[0], t.links[link]
    if not row.marked:
        row.marked = 1
        t.link_lists[1, c.marked] = link
        c.marked += 1
    if not row.seen:
        row.seen = 1
        t.link_lists[2, c.seen] = link
        c.seen += 1


@compiled
def _touch(t: Tables, a: int) -> None:
    """Remember the rate before the event, once."""
    c, row = t.counts[0], t.activities[a]
    if not row.touched:
        row.touched = 1
        row.before = row.rate
        t.activity_lists[1, c.touched] = a
        c.touched += 1


@compiled
def _free(t: Tables, a: int) -> None:
    """Bounded by its own limit alone from here on: all its shared links must be worked out."""
    _touch(t, a)
    t.activities[a].limiter = FREE
    e = t.activities[a].first
    while e >= 0:
        _mark(t, t.entries[e].link)
        e = t.entries[e].after


@compiled
def _enter(t: Tables, a: int, link: int, weight: float) -> None:
    """An entry for this pair, at the head of both lists."""
    entries, c = t.entries, t.counts[0]
    e = c.free
    c.free = entries[e].after
    c.room -= 1
    theirs, mine = t.links[link].first, t.activities[a].first
    row = entries[e]
    row.weight, row.activity, row.link = weight, a, link
    row.next, row.previous, row.after, row.ahead = theirs, -1, mine, -1
    if theirs >= 0:
        entries[theirs].previous = e
    if mine >= 0:
        entries[mine].ahead = e
    t.links[link].first = t.activities[a].first = e
    t.links[link].users += 1


@compiled
def _strike(t: Tables, e: int) -> None:
    """Take an entry out of both lists."""
    entries, c = t.entries, t.counts[0]
    row = entries[e]
    if row.previous >= 0:
        entries[row.previous].next = row.next
    else:
        t.links[row.link].first = row.next
    if row.next >= 0:
        entries[row.next].previous = row.previous
    if row.ahead >= 0:
        entries[row.ahead].after = row.after
    else:
        t.activities[row.activity].first = row.after
    if row.after >= 0:
        entries[row.after].ahead = row.ahead
    t.links[row.link].users -= 1
    row.after = c.free
    c.free = e
    c.room += 1


@compiled
def _level(t: Tables, link: int) -> float:
    """The water level L of sum(weight * min(limit, L)) = capacity; inf if the limits leave room.

    The limit of an activity is its bound, or its rate if another link holds it there. Newton's method on a
    concave function: from the second step on it comes from below, and ends when it stops rising.
    """
    capacity, guess = t.links[link].capacity, t.links[link].level
    if guess == np.inf:
        guess = 0.0
    first = True
    while True:
        taken = share = 0.0
        e = t.links[link].first
        while e >= 0:
            entry = t.entries[e]
            row = t.activities[entry.activity]
            limit = row.bound if row.limiter == link or row.limiter == FREE else row.rate
            if limit < guess:
                taken += entry.weight * limit
            else:
                share += entry.weight
            e = entry.next
        if share == 0.0:
            if taken <= capacity or not first:  # from below, none is passed but by rounding
                return np.inf
            guess = 0.0  # the old level was too high a start
            first = False
            continue
        level = (capacity - taken) / share
        if level == guess or (level < guess and not first):
            return float(level)
        guess = level
        first = False


@compiled
def _work_out_marked(t: Tables) -> None:
    """New levels of the marked links: into the heap with min(old, new), out of it if neither is finite."""
    c, keys, places = t.counts[0], t.links["key"], t.links["place"]
    for i in range(c.marked):
        link = t.link_lists[1, i]
        row = t.links[link]
        row.marked = 0
        row.key = min(row.level, _level(t, link))
        if row.key < np.inf:
            c.heap = put(t.link_lists[0], keys, places, link, c.heap)
        elif row.place >= 0:
            c.heap = take(t.link_lists[0], keys, places, link, c.heap)
    c.marked = 0


@compiled
def _refill(t: Tables, a: int, link: int) -> None:
    """The rate of `a` fell at `link`: its other full links are due, at their old level at the earliest."""
    c, keys, places = t.counts[0], t.links["key"], t.links["place"]
    e = t.activities[a].first
    while e >= 0:
        other = t.entries[e].link
        row = t.links[other]
        if other != link and row.place < 0 and row.level < np.inf:
            row.key = row.level
            c.heap = put(t.link_lists[0], keys, places, other, c.heap)
        e = t.entries[e].after


@compiled
def _settle(t: Tables, link: int, level: float) -> None:
    """Fix the activities that this link limits at its new level."""
    t.links[link].level = level
    low = level * (1 - TIE)
    e = t.links[link].first
    while e >= 0:
        a = t.entries[e].activity
        e = t.entries[e].next
        row = t.activities[a]
        free = row.limiter == FREE
        rate = level
        if free or row.limiter == link:
            if row.bound < low:
                rate = row.bound
            row.limiter = OWN if row.bound < low else link
        elif row.rate >= low:
            row.limiter = link
        else:
            continue
        if free:
            row.rate = row.before if abs(rate - row.before) <= TIE * rate else rate
        elif abs(rate - row.rate) > TIE * rate:
            _touch(t, a)
            row.rate = rate
            _refill(t, a, link)


@compiled
def _release(t: Tables, link: int) -> None:
    """Let the activities that this link limits rise."""
    t.links[link].level = np.inf
    _mark(t, link)
    e = t.links[link].first
    while e >= 0:
        a = t.entries[e].activity
        if t.activities[a].limiter == link:
            _free(t, a)
        e = t.entries[e].next
    _work_out_marked(t)


@compiled
def _apply_rates(t: Tables, now: float) -> None:
    """Where a rate has changed: what has been moved so far, and when the rest will be."""
    c, heap = t.counts[0], t.activity_lists[0]
    for i in range(c.touched):
        a = t.activity_lists[1, i]
        row = t.activities[a]
        row.touched = 0
        if row.limiter == FREE:
            row.limiter = OWN
            row.rate = row.bound
        if row.limiter != GONE and row.rate != row.before:
            c.changed += 1
            row.remaining = max(row.remaining - row.before * (now - row.since), 0.0)
            row.since = now
            row.finish = now + row.remaining / row.rate
            row.top = max(row.top, row.rate)
            c.due = put(heap, t.activities["finish"], t.activities["place"], a, c.due)
    c.touched = 0


@compiled
def _note_peaks(t: Tables) -> None:
    """Highest load / capacity of the links where rates may have risen."""
    c = t.counts[0]
    for i in range(c.seen):
        row = t.links[t.link_lists[2, i]]
        row.seen = 0
        if row.peak == 1.0:
            continue
        if row.level < np.inf:
            row.peak = 1.0
            continue
        load = 0.0
        e = row.first
        while e >= 0:
            load += t.entries[e].weight * t.activities[t.entries[e].activity].rate
            e = t.entries[e].next
        row.peak = min(max(row.peak, load / row.capacity), 1.0)
    c.seen = 0


# Called from outside. The tables come as a plain tuple: numba unpacks it twice as fast as a named one.


@compiled
def solve(tables: Tables, now: float) -> float:
    """Bring all rates up to date after `join`, `leave` and `renew`; -> the next finish time, inf if none."""
    t = Tables(*tables)
    c, heap, keys, places = t.counts[0], t.link_lists[0], t.links["key"], t.links["place"]
    _work_out_marked(t)
    while c.heap > 0:
        link = heap[0]
        row = t.links[link]
        c.handled += 1
        new = _level(t, link)
        key = min(row.level, new)
        if row.key < key < np.inf:  # levels have risen since it came into the heap
            row.key = key
            sink(heap, keys, places, 0, c.heap)
            if heap[0] != link:
                continue
        c.heap = take(heap, keys, places, link, c.heap)
        if key == np.inf:
            continue
        if new <= row.level * (1 + TIE):
            _settle(t, link, new)
        else:
            _release(t, link)
    _apply_rates(t, now)
    _note_peaks(t)
    return float(t.activities[t.activity_lists[0, 0]].finish) if c.due > 0 else np.inf


@compiled
def join(
    tables: Tables, a: int, links: Rows, weights: Rows, size: float, cap: float, begin: float, now: float
) -> None:
    """Activity `a` comes and takes its links; those in use become shared."""
    t = Tables(*tables)
    mine = t.activities[a]
    mine.rate, mine.bound, mine.limiter = 0.0, cap, FREE
    mine.remaining, mine.since, mine.finish, mine.begin, mine.top = size, now, np.inf, begin, 0.0
    _touch(t, a)
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
            _enter(t, owner, link, row.weight)
            row.owner = SHARED
        _enter(t, a, link, weights[i])
        _mark(t, link)


@compiled
def leave(tables: Tables, a: int, links: Rows, now: float) -> None:
    """Activity `a` gives its links back; a link with one user left becomes that one's own."""
    t = Tables(*tables)
    mine = t.activities[a]
    for link in links:
        row = t.links[link]
        if row.owner == a:
            row.owner = NOBODY
            row.busy += now - row.since
            row.peak = max(row.peak, min(row.weight * mine.top / row.capacity, 1.0))
    while mine.first >= 0:
        e = mine.first
        link = t.entries[e].link
        _strike(t, e)
        _mark(t, link)
        row = t.links[link]
        if row.users == 1:
            last = row.first
            heir = t.entries[last].activity
            row.owner, row.weight, row.level = heir, t.entries[last].weight, np.inf
            _strike(t, last)
            if t.activities[heir].limiter == link:
                _free(t, heir)
    mine.limiter = GONE
    if mine.place >= 0:
        c = t.counts[0]
        c.due = take(t.activity_lists[0], t.activities["finish"], t.activities["place"], a, c.due)


@compiled
def renew(tables: Tables, a: int, bound: float) -> None:
    """A link of `a` has another capacity, so `a` another bound."""
    t = Tables(*tables)
    t.activities[a].bound = bound
    _free(t, a)


@compiled
def due(tables: Tables, now: float, found: Rows) -> int:
    """Take out those that finish now, within `TIE` of their own duration, into `found`; -> how many."""
    t = Tables(*tables)
    c, n = t.counts[0], 0
    while c.due > 0:
        a = t.activity_lists[0, 0]
        row = t.activities[a]
        if row.finish - now > TIE * (row.finish - row.begin):
            break
        c.due = take(t.activity_lists[0], t.activities["finish"], t.activities["place"], a, c.due)
        found[n] = a
        n += 1
    return n


@compiled
def adopt(tables: Tables, a: int) -> None:
    """Activity `a`, whose row is filled in and which shares nothing, is among those that will finish."""
    t = Tables(*tables)
    c = t.counts[0]
    c.due = put(t.activity_lists[0], t.activities["finish"], t.activities["place"], a, c.due)
