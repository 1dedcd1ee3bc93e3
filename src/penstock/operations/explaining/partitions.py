"""What is wrong with what a group reads: it stands at one record, is held back, loses records, or has no leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.units import bytes_text, count, duration_text
from penstock.operations import held_back
from penstock.operations.diagnosis.findings import Finding
from penstock.operations.explaining.members import COMMIT_SPAN_MS
from penstock.operations.explaining.naming import listed
from penstock.operations.explaining.paces import Pace, stands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.model.ids import TopicPartition
    from penstock.operations.explaining.sights import GroupFacts, Unread

SOON_MS: Final = 24 * 3_600_000
"""What is deleted within a day is worth a word; somebody has to find it, mend it and let it catch up."""
_URGENT_MS: Final = 3_600_000
_HOT_SHARE: Final = 0.5
_HOT_TIMES: Final = 3
_HOT_RATE_MIN: Final = 10.0
_KEY_SHOWN: Final = 40


def stuck(facts: GroupFacts) -> list[Finding]:
    """One position stands although records are there and the same member moves elsewhere, or has nothing else."""
    if facts.span_ms < COMMIT_SPAN_MS:
        return []
    found = []
    for item, part in sorted(facts.last.partitions.items()):
        if part.member_id is None or not part.lag or not stands(facts, item):
            continue
        others = [
            other
            for other, its in facts.last.partitions.items()
            if other != item and its.member_id == part.member_id and its.lag
        ]
        if others and all(stands(facts, other) for other in others):
            continue  # the whole member stands: `members.not_committing`
        reader = facts.last.readers.get(part.member_id)
        found.append(
            Finding(
                "problem",
                "stuck",
                f"{item} stands at offset {part.committed} for {duration_text(facts.span_ms)}"
                f"{f', read by {reader}' if reader else ''}",
                _record_words(facts.unread.get(item)),
                f"look at it: `penstock consume {item.topic} -p {item.partition} -o {part.committed} -n 1`; "
                f"if it is bad, stop the group and go past it: `penstock group seek {facts.group_id} "
                f"--topic {item.topic}:{item.partition} --to {(part.committed or 0) + 1}`",
            )
        )
    return found


def _record_words(unread: Unread | None) -> str:
    if unread is None:
        return "the record there is worked on for long, or cannot be worked on at all"
    key = "no key" if unread.key is None else f"key {unread.key[:_KEY_SHOWN].decode('utf-8', 'backslashreplace')!r}"
    return f"the record at offset {unread.offset} ({bytes_text(unread.size)}, {key}) takes long or cannot be worked on"


def held(facts: GroupFacts) -> list[Finding]:
    """Readers of committed records wait where a transaction is open; others read on and are not named."""
    waiting = {
        item: part
        for item, part in facts.last.partitions.items()
        if part.committed is not None and 0 <= part.stable < part.end and part.committed >= part.stable
    }
    found = []
    for each in facts.open:
        for item, part in waiting.items():
            if (each.topic, each.partition) != item or each.start_offset > part.stable:
                continue
            found.append(
                Finding(
                    "problem",
                    "held_back",
                    f"{item} is read up to an open transaction: {held_back.words(each, facts.last.at_ms)}",
                    f"{count('record', part.end - part.stable, grouped=True)} behind it are not shown to readers of "
                    "committed records until it ends",
                    "`penstock txn find-hanging` and `penstock txn abort` end one that no coordinator knows"
                    if each.hanging
                    else f"`penstock txn describe {each.transactional_id}`; `penstock txn fence "
                    f"{each.transactional_id}` aborts it",
                )
            )
    return found


def lost(facts: GroupFacts) -> list[Finding]:
    """Retention was faster than the group."""
    return [
        Finding(
            "problem",
            "already_lost",
            f"{item}: {count('record', part.start - part.committed, grouped=True)} were deleted before they were read",
            f"the group stands at offset {part.committed}, and the partition begins at {part.start}: "
            "auto.offset.reset decides where it goes on",
            f"`penstock group seek {facts.group_id} --topic {item.topic}:{item.partition} --to start` reads what is "
            f"left; a longer retention.ms of {item.topic} keeps the rest",
        )
        for item, part in sorted(facts.last.partitions.items())
        if part.committed is not None and 0 <= part.committed < part.start
    ]


def going(facts: GroupFacts, paces: Mapping[TopicPartition, Pace]) -> list[Finding]:
    """Retention will be faster than the group, at the earliest in so long: whole segments go, the newest never."""
    found = []
    for item, part in sorted(facts.last.partitions.items()):
        behind_ms, kept_ms = facts.behind_ms(item), facts.retention_ms.get(item.topic, -1)
        if not part.lag or behind_ms is None or kept_ms < 0:
            continue
        left_ms = max(kept_ms - behind_ms, 0)
        drain_s = paces[item].drain_s if item in paces else None
        if left_ms > SOON_MS or (drain_s is not None and drain_s * 1_000 < left_ms):
            continue
        urgent = left_ms < _URGENT_MS
        when = f"in {duration_text(left_ms)}" if left_ms else "any moment"
        found.append(
            Finding(
                "problem" if urgent else "notice",
                "will_be_lost",
                f"{item}: {when} the oldest unread records are old enough to be deleted",
                f"they are {duration_text(behind_ms)} old, retention.ms of {item.topic} is {duration_text(kept_ms)}, "
                "and the group does not catch up before",
                f"keep them longer until it has: `penstock topic alter {item.topic} -c retention.ms={kept_ms * 2}`",
            )
        )
    return found


def hot(paces: Mapping[TopicPartition, Pace]) -> list[Finding]:
    """One partition of a topic takes most of what is written, so more members do not help."""
    found = []
    for topic in sorted({item.topic for item in paces}):
        here = {item: pace for item, pace in paces.items() if item.topic == topic}
        written = sum(pace.incoming for pace in here.values())
        if len(here) < _HOT_TIMES or written < _HOT_RATE_MIN:
            continue
        item, most = max(here.items(), key=lambda each: each[1].incoming)
        if most.incoming < _HOT_SHARE * written or most.incoming * len(here) < _HOT_TIMES * written or not most.lag:
            continue
        found.append(
            Finding(
                "notice",
                "hot_partition",
                f"{item} takes {100 * most.incoming / written:.0f} % of what is written to {topic}, and it is behind",
                "one member alone reads it, however many there are",
                f"see which key it is: `penstock consume {topic} -p {item.partition} -o -1000:end -f '%k\\n' "
                "| sort | uniq -c`; spread that key, or make the work on it cheaper",
            )
        )
    return found


def away(facts: GroupFacts) -> list[Finding]:
    leaderless = sorted(str(item) for item, part in facts.last.partitions.items() if part.leader < 0)
    thin = sorted(
        str(item) for item, part in facts.last.partitions.items() if part.leader >= 0 and part.in_sync < part.replicas
    )
    found = []
    if leaderless:
        found.append(
            Finding(
                "problem",
                "leaderless",
                f"nobody leads {listed(leaderless)}",
                "what has no leader cannot be read",
                "bring back a broker that has an in-sync replica: `penstock cluster health` names it",
            )
        )
    if thin:
        found.append(
            Finding(
                "notice",
                "under_replicated",
                f"replicas are not in sync in {listed(thin)}",
                "records are shown when all replicas that are in sync have them; one that lags delays them",
                "see which brokers lag or are down: `penstock cluster brokers`",
            )
        )
    return found
