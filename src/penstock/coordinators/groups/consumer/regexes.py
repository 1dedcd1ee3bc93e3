"""Subscriptions by pattern: RE2 expressions and the topics they match, looked up anew from time to time.

All patterns of a group are looked up together, so that a change costs one rebalance. A look-up is due when a pattern
has none yet, when topics were created since, or when the last one is old; never sooner than ten seconds after the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.coordinators.decision import MayDescribe, Moment, StateRecord
from penstock.coordinators.groups.consumer import records
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.consumer.limits import regex_refresh_interval_ms
from penstock.coordinators.groups.consumer.member import Member, ResolvedRegex
from penstock.model.errors import INVALID_REGULAR_EXPRESSION, Refused
from penstock.model.patterns import NotRe2, Re2Pattern, compile_re2

if TYPE_CHECKING:
    from penstock.coordinators.groups.table import GroupTable
    from penstock.metadata.image import ClusterImage

REFRESH_INTERVAL_MIN_MS: Final = 10_000

NO_CHANGE: Final = 0
CHANGED: Final = 1
CHANGED_AND_KNOWN: Final = 2
"""The member has another pattern now, or none, and what that means for its topics is known already."""


def check_regex(regex: str) -> None:
    """Refused unless `regex` is a pattern in RE2's syntax."""
    _compiled(regex)


def _compiled(regex: str) -> Re2Pattern[str]:
    try:
        return compile_re2(regex)
    except NotRe2 as broken:
        raise Refused(INVALID_REGULAR_EXPRESSION, f"{regex!r} is no pattern in RE2's syntax: {broken}") from None


def resolve(
    regexes: Iterable[str], image: ClusterImage, now: Moment, may_describe: MayDescribe
) -> dict[str, ResolvedRegex]:
    """The topics of `image` whose whole name matches, by pattern, as far as the asking member may know of them."""
    names = sorted(image.ids)
    found = {}
    for regex in regexes:
        matches = _compiled(regex).fullmatch
        topics = frozenset(name for name in names if matches(name) and may_describe(name))
        found[regex] = ResolvedRegex(topics, image.offset, now.wall)
    return found


def note_change(group: ConsumerGroup, before: Member, after: Member, out: list[StateRecord]) -> int:
    """Whether the member's pattern changed. A pattern nobody else uses is dropped, a new one is checked."""
    if before.regex == after.regex:
        return NO_CHANGE
    if before.regex and group.regex_counts.get(before.regex) == 1:
        out.append(records.regex_tombstone(group.id, before.regex))
    if not after.regex:
        return CHANGED_AND_KNOWN
    if after.regex not in group.regex_counts:
        check_regex(after.regex)
        return CHANGED
    return CHANGED_AND_KNOWN if after.regex in group.resolved else CHANGED


def counts_after(group: ConsumerGroup, before: Member, after: Member) -> dict[str, int]:
    """How many members use each pattern once `before` has become `after`."""
    if before.regex == after.regex:
        return group.regex_counts
    counts = dict(group.regex_counts)
    if before.regex in counts:
        counts[before.regex] -= 1
    if after.regex:
        counts[after.regex] = counts.get(after.regex, 0) + 1
    return {regex: count for regex, count in counts.items() if count}


def refresh_due(table: GroupTable, group: ConsumerGroup, counts: dict[str, int], now: Moment) -> bool:
    """Whether the group's patterns must be looked up now; `counts` are those it uses."""
    if not counts:
        return False
    last = max((found.timestamp for found in group.resolved.values()), default=None)
    if last is None:
        return True
    if now.wall <= last + REFRESH_INTERVAL_MIN_MS:
        return False
    return (
        max(found.version for found in group.resolved.values()) < group.topics_made_at
        or counts.keys() != group.resolved.keys()
        or now.wall > last + regex_refresh_interval_ms(table.settings)
    )
