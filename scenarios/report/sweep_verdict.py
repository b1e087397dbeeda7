"""The finding of a sweep in a sentence, and what must be known beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.report.sweeping import Sweeping
from scenarios.sweeps.points import as_text, short_keys
from scenarios.sweeps.settings import Measure, Setting, ranked, said, title
from scenarios.words import listed, plural

#: Settings of which the means differ by less than this share are equally good.
EQUAL = 0.01

#: Groups whose winners stand in the headline.
MOST_GROUPS = 6


def verdict(sweeping: Sweeping) -> tuple[str, str]:
    """Headline and the rest."""
    return _tuned(sweeping.best) if sweeping.best else _best_setting(sweeping)


def _best_setting(sweeping: Sweeping) -> tuple[str, str]:
    measure = sweeping.measure
    order = ranked(sweeping.settings, measure)
    if not order:
        return f"No setting has a {title(measure.metric)} in every run.", ""
    headline = f"Best {title(measure.metric)}: {sweeping.named(order[0])}, {_value(order[0], measure)}."
    parts = [*_winners(sweeping)]
    if len(order) > 1:
        last = order[-1]
        parts.append(f"The last of {len(order)}: {sweeping.named(last)}, {_value(last, measure)}.")
    if lacking := len(sweeping.settings) - len(order):
        parts.append(f"{plural(lacking, 'setting')} without it in every seed.")
    return headline, " ".join(parts)


def _value(setting: Setting, measure: Measure) -> str:
    return said(measure.metric, setting.mean(measure.metric))


def _winners(sweeping: Sweeping) -> list[str]:
    """At how many points each variant is the best, where there are several of both."""
    by_point: dict[tuple[object, ...], list[Setting]] = {}
    for setting in sweeping.settings:
        by_point.setdefault(tuple(setting.values.values()), []).append(setting)
    contests = [ours for ours in by_point.values() if len(ours) > 1]
    if len(contests) < 2:
        return []
    found: Counter[str] = Counter()
    for ours in contests:
        order = ranked(ours, sweeping.measure)
        if len(order) > 1 and _differ(order[0], order[1], sweeping.measure):
            found[order[0].variant] += 1
    wins = [f"{variant} at {count}" for variant, count in found.most_common(6)]
    equal = len(contests) - sum(found.values())
    wins += [f"nobody by more than 1 % at {equal}"] if equal else []
    return [f"Of {len(contests)} points the best is {listed(wins)}."]


def _differ(first: Setting, second: Setting, measure: Measure) -> bool:
    a, b = first.mean(measure.metric) or 0.0, second.mean(measure.metric) or 0.0
    return abs(a - b) > EQUAL * max(abs(a), abs(b))


def _tuned(best: Mapping[str, object]) -> tuple[str, str]:
    metric, by, choices = str(best["metric"]), str(best["by"]), best["choices"]
    assert isinstance(choices, list)
    within = best["within"]
    assert isinstance(within, list)
    short = short_keys([by, *within])[by]
    found = [one for one in choices if one[by] is not None]
    if not found:
        return f"No value of {by} gives a {title(metric)} in any run.", ""
    sign = 1 if best["goal"] == "min" else -1
    order = sorted(found, key=lambda one: (one["without"], sign * one["mean"]))
    headline = _first(order, choices, metric, by, within)
    parts = []
    if len(found) > 1:
        chosen = sorted({as_text(one[by]) for one in found}, key=_sortable)
        which = f"always {chosen[0]}" if len(chosen) == 1 else listed(chosen)
        parts.append(f"Best {short} of {len(found)} groups tuned alike: {which}.")
    if none := len(choices) - len(found):
        parts.append(f"{plural(none, 'group')} without any.")
    if ends := sum(one["at_end"] for one in found):
        parts.append(f"In {ends} the best value is the last of its list: a wider list may do better.")
    return headline, " ".join(parts)


def _first(
    order: Sequence[Mapping[str, Any]], choices: Sequence[Mapping[str, Any]], metric: str, by: str,
    within: Sequence[str],
) -> str:  # fmt: skip
    """The best choice; the best variant of each group where a few groups have several."""
    others = [key for key in within if key != "variant"]
    names = list(dict.fromkeys(", ".join(as_text(one[key]) for key in others) for one in choices))
    if "variant" in within and 1 < len(names) <= MOST_GROUPS:
        first: dict[str, str] = {}
        for one in order:
            name = ", ".join(as_text(one[key]) for key in others)
            first.setdefault(name, f"{name}: {one['variant']} ({said(metric, one['mean'])})")
        winners = "; ".join(first[name] for name in names if name in first)
        return f"Best {title(metric)}, all tuned alike: {winners}."
    where, short = ", ".join(as_text(order[0][key]) for key in within), short_keys([by, *within])[by]
    value = said(metric, order[0]["mean"])
    return f"Best {title(metric)}: {f'{where}: ' if where else ''}{short} {as_text(order[0][by])}, {value}."


def _sortable(shown: str) -> tuple[float, str]:
    try:
        return float(shown), shown
    except ValueError:
        return float("inf"), shown
