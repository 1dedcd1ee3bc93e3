"""All that can be said about why a group is behind, the worst first, and one sentence about the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.units import count, duration_text
from penstock.operations.diagnosis.findings import Finding
from penstock.operations.explaining import members, pace, partitions
from penstock.operations.explaining.paces import paces_of

if TYPE_CHECKING:
    from penstock.operations.explaining.sights import GroupFacts


def explain(facts: GroupFacts) -> list[Finding]:
    """Problems before notices; within them what keeps all of the group from reading comes before what slows it."""
    paces = paces_of(facts)
    found = [
        members.nobody(facts),
        members.rebalancing(facts),
        *partitions.lost(facts),
        *[each for each in partitions.away(facts) if each.level == "problem"],
        *members.not_committing(facts),
        *partitions.stuck(facts),
        *partitions.held(facts),
        *partitions.going(facts, paces),
        pace.unusual(facts, paces),
        pace.slower(facts, paces),
        *partitions.hot(paces),
        members.overloaded(facts),
        members.idle(facts),
        *pace.limited(facts),
        *[each for each in partitions.away(facts) if each.level == "notice"],
        pace.draining(paces),
    ]
    return sorted((each for each in found if each is not None), key=lambda each: each.level != "problem")


def behind_ms(facts: GroupFacts) -> int | None:
    """How old the oldest record is that the group has not read, as far as somebody looked; None: nobody could tell."""
    ages = [facts.behind_ms(item) for item, part in facts.last.partitions.items() if part.lag]
    return max((age for age in ages if age is not None), default=None) if ages else 0


def summary(facts: GroupFacts) -> str:
    last = facts.last
    who = f"{last.state or 'state unknown'}, {count('member', len(last.readers))}"
    if not last.partitions:
        return f"group {facts.group_id} ({who}) has no positions and reads nothing"
    if not last.lag:
        return f"group {facts.group_id} ({who}) has read everything"
    age = behind_ms(facts)
    old = f", the oldest unread {duration_text(age)} old" if age is not None else ""
    behind = sum(1 for part in last.partitions.values() if part.lag)
    return (
        f"group {facts.group_id} ({who}) is {count('record', last.lag, grouped=True)} behind in "
        f"{behind} of {count('partition', len(last.partitions))}{old}"
    )
