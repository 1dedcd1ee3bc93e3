"""What is wrong with those who read: nobody does, they come and go, do not commit, or have nothing to read."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from penstock.model.units import count, duration_text
from penstock.operations.diagnosis.findings import Finding
from penstock.operations.explaining.naming import listed
from penstock.operations.explaining.paces import stands

if TYPE_CHECKING:
    from penstock.operations.explaining.sights import GroupFacts, GroupSight, Reader

COMMIT_SPAN_MS: Final = 8_000
"""Consumers commit every 5 s by default: one that did not in this time works on a record, or does not commit."""
_SETTLED: Final = ("Stable", "Empty", "Dead", "")
LAG_MIN: Final = 1_000
"""Fewer records are read at once; whoever has them is not slow."""
_MOST: Final = 0.8
_COMINGS: Final = 2
"""A group that grows by one member rebalances once; whoever does it twice while somebody looks does it often."""


def nobody(facts: GroupFacts) -> Finding | None:
    last = facts.last
    if last.readers or not last.lag:
        return None
    return Finding(
        "problem",
        "nobody_reads",
        f"nobody reads: group {facts.group_id} has no members",
        f"{count('record', last.lag, grouped=True)} wait, and more with every one that is written",
        f"start its consumers, or `penstock group delete {facts.group_id}` if it is not needed any more",
    )


def rebalancing(facts: GroupFacts) -> Finding | None:
    """While a group of the classic protocol rebalances nobody reads, so one that always does stands."""
    sights = facts.sights
    unsettled = [sight for sight in sights if sight.state not in _SETTLED]
    changes = sum(_changed(a, b) for a, b in pairwise(sights))
    stuck = len(sights) > 1 and len(unsettled) == len(sights)
    if not stuck and changes < _COMINGS:
        return None
    gone = listed(sorted({str(reader) for reader in _came_or_went(facts)}))
    seen = (
        f"it was {unsettled[-1].state} whenever it was looked at"
        if stuck
        else f"its members changed {count('time', changes)}"
    )
    return Finding(
        "problem",
        "rebalancing",
        f"group {facts.group_id} does not come to rest: {seen} in {duration_text(facts.span_ms)}",
        f"nobody reads meanwhile{f'; these come and go: {gone}' if gone else ''}",
        "look into the logs of these members: they crash, run out of max.poll.interval.ms because a batch takes too "
        "long (lower max.poll.records), or do not heartbeat within session.timeout.ms",
    )


def _changed(before: GroupSight, after: GroupSight) -> bool:
    return before.epoch != after.epoch or set(before.readers) != set(after.readers)


def _came_or_went(facts: GroupFacts) -> list[Reader]:
    always = set.intersection(*(set(sight.readers) for sight in facts.sights))
    return [reader for sight in facts.sights for reader in sight.readers.values() if reader.id not in always]


def not_committing(facts: GroupFacts) -> list[Finding]:
    """Members that commit nowhere although there is something to read wherever they are."""
    if facts.span_ms < COMMIT_SPAN_MS:
        return []
    found = []
    for reader in facts.last.readers.values():
        lagging = [item for item, part in facts.last.partitions.items() if part.member_id == reader.id and part.lag]
        steady = [item for item in lagging if stands(facts, item)]
        # In one partition alone it may be that record; `partitions.stuck` shows it.
        if len(lagging) < 2 or len(steady) < len(lagging):
            continue
        lag = sum(facts.last.partitions[item].lag for item in lagging)
        found.append(
            Finding(
                "problem",
                "not_committing",
                f"{reader} has committed nothing for {duration_text(facts.span_ms)} in all "
                f"{count('partition', len(lagging))} where it is behind",
                f"it heartbeats, so the group waits for it: {count('record', lag, grouped=True)} lie there",
                "look what its process does: it hangs in one record or one call, commits only after a large batch, or "
                "enable.auto.commit is off and nobody commits; without it the others take over its partitions",
            )
        )
    return found


def idle(facts: GroupFacts) -> Finding | None:
    last = facts.last
    without = [reader for reader in last.readers.values() if not reader.partitions]
    if not without or last.state not in ("Stable", "") or not last.lag:
        return None
    partitions = sum(1 for part in last.partitions.values() if part.member_id is not None)
    return Finding(
        "notice",
        "idle_members",
        f"{count('member', len(without))} of {len(last.readers)} have nothing to read: "
        f"{listed(sorted(map(str, without)))}",
        f"a partition has one reader, and there are {partitions} of them",
        "more members do not help; more partitions do: `penstock topic add-partitions TOPIC -p N` "
        "(keys then go to other partitions than before)",
    )


def overloaded(facts: GroupFacts) -> Finding | None:
    """One member has much more of the lag than its share."""
    last = facts.last
    busy = {reader.id: 0 for reader in last.readers.values() if reader.partitions}
    for part in last.partitions.values():
        if part.member_id in busy:
            busy[part.member_id] += part.lag
    if len(busy) < 2 or not last.lag:
        return None
    slowest, lag = max(busy.items(), key=lambda each: each[1])
    if lag < _MOST * sum(busy.values()) or lag < LAG_MIN:
        return None
    reader = last.readers[slowest]
    if reader.partitions * 2 > sum(last.readers[each].partitions for each in busy):
        return None  # it is behind in most because it has most
    return Finding(
        "notice",
        "slow_member",
        f"{reader} has {100 * lag // last.lag} % of the lag with {count('partition', reader.partitions)}",
        "the others keep up, so it is this process or its machine rather than the records",
        "compare its CPU, memory and calls with the others'; a restart gives its partitions away",
    )
