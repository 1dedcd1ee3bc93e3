"""What must be true when everything has come to rest. Pure: the same evidence gives the same verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from penstock.demo.evidence import Arrival, Evidence

Key = TypeVar("Key", int, tuple[int, int])

_NAMED: Final = 3
"""Examples that a failed check names."""


class Verdict(NamedTuple):
    """`name` is what is checked, `words` what was found."""

    name: str
    words: str
    good: bool


def judge(found: Evidence) -> list[Verdict]:
    """Every check, whatever the others say."""
    return [
        _lines_add_up(found),
        _none_is_missing(found),
        _once(found),
        _no_gaps(found),
        _no_duplicates(found),
        _letters_are_the_broken_lines(found),
        Verdict("audit", found.audit_words, found.audit_clean),
        _minutes_add_up(found),
        Verdict("audited sums", found.sums_words, found.sums_clean),
    ]


def _lines_add_up(found: Evidence) -> Verdict:
    """The headline: distinct by topic, partition and offset."""
    rows, letters = len(_places(found.rows)), len(_places(found.letters))
    good = found.written == rows + letters
    sign = "=" if good else "≠"
    return Verdict("lines", f"{found.written:,} written {sign} {rows:,} rows + {letters:,} dead letters", good)


def _none_is_missing(found: Evidence) -> Verdict:
    arrived = {each.line for each in (*found.rows, *found.letters)}
    missing = [line for line in range(found.written) if line not in arrived]
    foreign = sorted(arrived - set(range(found.written)))
    if foreign:
        return Verdict("missing", f"arrived, and never written: {_some('line', foreign)}", False)
    if missing:
        return Verdict("missing", f"written, and nowhere: {_some('line', missing)}", False)
    return Verdict("missing", "0: every line is in the table or a dead letter, by its own number", True)


def _once(found: Evidence) -> Verdict:
    """From the file to the topic, whatever the table says: by the number that each line has."""
    times = Counter(found.shipped)
    twice, lacking = _repeated(found.shipped), [line for line in range(found.written) if line not in times]
    if twice:
        return Verdict("once", f"in the topic more than once: {_some('line', twice)}", False)
    if lacking:
        return Verdict("once", f"written, and not in the topic: {_some('line', lacking)}", False)
    words = f"each of {found.written:,} lines is one committed record: exactly once from the file on"
    return Verdict("once", words, True)


def _no_gaps(found: Evidence) -> Verdict:
    """Between topic and table: every record that the topic has is a row or a dead letter, and where it has none, none
    is: offsets that transactions took for their markers, or that were aborted."""
    places = _places(found.rows) | _places(found.letters)
    gaps = [
        f"{partition}:{offset}"
        for partition, (start, end) in sorted(found.topic.items())
        for offset in range(start, end)
        if (partition, offset) not in places and (partition, offset) not in found.absent
    ]
    unreal = [f"{partition}:{offset}" for partition, offset in sorted(places & found.absent)]
    offsets = sum(end - start for start, end in found.topic.values())
    if gaps:
        return Verdict("gaps", f"in the topic, and neither row nor dead letter: {_some('offset', gaps)}", False)
    if unreal:
        return Verdict("gaps", f"no record of the topic, and yet there: {_some('offset', unreal)}", False)
    absent = f", {len(found.absent):,} of them without a record" if found.absent else ""
    return Verdict("gaps", f"0 in {offsets:,} offsets of {len(found.topic)} partitions{absent}", True)


def _no_duplicates(found: Evidence) -> Verdict:
    """In the table, by where a row comes from and by what it is; and no line is both a row and a dead letter."""
    places = _repeated((each.partition, each.offset) for each in found.rows)
    lines = _repeated(each.line for each in found.rows)
    both = sorted({each.line for each in found.rows} & {each.line for each in found.letters})
    if places:
        names = [f"{partition}:{offset}" for partition, offset in places]
        return Verdict("duplicates", f"in the table more than once: {_some('offset', names)}", False)
    if lines:
        return Verdict("duplicates", f"in the table more than once: {_some('line', lines)}", False)
    if both:
        return Verdict("duplicates", f"both row and dead letter: {_some('line', both)}", False)
    return Verdict("duplicates", "0 in the table, by offset and by number of the line", True)


def _letters_are_the_broken_lines(found: Evidence) -> Verdict:
    letters = {each.line for each in found.letters}
    innocent, passed = sorted(letters - found.broken), sorted({each.line for each in found.rows} & found.broken)
    if innocent:
        return Verdict("dead letters", f"never broken, and there: {_some('line', innocent)}", False)
    if passed:
        return Verdict("dead letters", f"broken, and in the table: {_some('line', passed)}", False)
    return Verdict("dead letters", f"{len(letters):,}, and only lines that were broken on purpose", True)


def _minutes_add_up(found: Evidence) -> Verdict:
    wrong = _differing(found.minutes_in_table, found.minutes_in_topic)
    if wrong:
        first = wrong[0]
        table, topic = found.minutes_in_table.get(first, 0), found.minutes_in_topic.get(first, 0)
        words = f"{_some('minute', wrong)}: {table:,} rows in the table, {topic:,} by the topic"
        return Verdict("aggregates", words, False)
    total, minutes = sum(found.minutes_in_topic.values()), len(found.minutes_in_topic)
    return Verdict("aggregates", f"{minutes:,} minutes in the topic add up to the table's {total:,} rows", True)


def _differing(left: Mapping[str, int], right: Mapping[str, int]) -> list[str]:
    return sorted(key for key in left.keys() | right.keys() if left.get(key, 0) != right.get(key, 0))


def _places(arrivals: Iterable[Arrival]) -> set[tuple[int, int]]:
    return {(each.partition, each.offset) for each in arrivals}


def _repeated(values: Iterable[Key]) -> list[Key]:
    return sorted(value for value, times in Counter(values).items() if times > 1)


def _some(noun: str, items: list[int] | list[str]) -> str:
    """`line 4711`, or `3 lines (4711, 4712, …)`."""
    if len(items) == 1:
        return f"{noun} {items[0]}"
    named = ", ".join(str(item) for item in items[:_NAMED])
    return f"{len(items):,} {noun}s ({named}{', …' if len(items) > _NAMED else ''})"
