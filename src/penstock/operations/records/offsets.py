"""Where to begin and where to stop: `-o start`, `-10`, `+3`, `5:9`, `:end`, `@2022-02-14:1h`, `@-48h:-24h`.

    start, end      the first record, whatever comes from now on (also oldest, newest)
    42   42:        from offset 42 on
    +10             ten after the start of the log
    -10             the last ten
    5:9   5-9       offsets 5 to 8
    :9   :end       from the start, until offset 8, until what is the end now (as in -10:end)
    @T   @T:        from the first record whose timestamp is T or later
    @T1:T2  @:T2    from T1, or the start, until before T2
    @T:end          from T until what is the end now

T is 13 to 19 digits (milliseconds since 1970), 9 or 10 digits (seconds), YYYY-MM-DD, YYYY-MM-DDTHH:MM:SS[.mmm]Z in UTC,
or a duration: `-48h` is that long before now; as T2, `1h` is that long after T1. Durations: 3ms 10s 9m 1h 2d, 1h30m.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Kind = Literal["start", "end", "offset", "time"]

NUMBER_MAX = (1 << 63) - 1
"""The last offset and the last time that a request can name."""

TEXT_MAX = 200
"""Longer than any place that there is; Python reads no number of more than 4,300 digits."""

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "hr": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)(ms|s|m|hr|h|d)")
_DURATIONS = re.compile(r"(?:\d+(?:ms|s|m|hr|h|d))+")
# A moment holds colons of its own, so the first part of a pair is found by what it looks like.
_MOMENT = re.compile(
    r"\d{13,19}(?!\d)|\d{9,10}(?![\d-])|\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d*)?(?:Z|[+-]\d\d:\d\d))?"
    r"|[+-]?(?:\d+(?:ms|s|m|hr|h|d))+"
)
_MILLIS_DIGITS = 13
_WORDS: dict[str, Kind] = {"start": "start", "oldest": "start", "end": "end", "newest": "end"}


class BadOffset(ValueError):
    """The text is no offset; the message says which part and what would be."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a partition. `number` is an offset, a time in ms, or the distance from the start (+) or end (-)."""

    kind: Kind
    number: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """From where, and until where (None: for ever)."""

    first: Point
    until: Point | None = None

    def times(self) -> list[int]:
        """The moments whose offsets have to be looked up."""
        return [point.number for point in (self.first, self.until) if point is not None and point.kind == "time"]


def parse_range(text: str, now_ms: int) -> Range:
    if len(text) > TEXT_MAX:
        raise BadOffset(f"{text[:20]!r}... is too long for a place")
    if text.startswith("@"):
        return _times(text[1:], now_ms)
    first, separator, last = _halves(text)
    if not separator:
        return Range(_point(first))
    begin = _point(first) if first else Point("start")
    if not last:
        if not first:
            raise BadOffset(f"{text!r} names neither a first offset nor a last")
        return Range(begin)
    until = _point(last)
    if until.kind not in ("offset", "end") or (until.kind == "end" and until.number):
        raise BadOffset(f"{last!r} is no place to stop: expected an offset or `end`")
    if begin.kind == until.kind == "offset" and until.number < begin.number:
        raise BadOffset(f"{text!r} ends before it begins")
    return Range(begin, until)


def parse_point(text: str, now_ms: int) -> Point:
    """One place, for seeking: everything of the grammar that has no end."""
    found = parse_range(text, now_ms)
    if found.until is not None:
        raise BadOffset(f"{text!r} is a range; one place is wanted")
    return found.first


def place(point: Point, start: int, end: int, at_times: dict[int, int]) -> int:
    """The offset of a point in a partition that holds [start, end).

    `at_times` has the offset of the first record at or after a time; where there is none, it is the end.
    """
    match point.kind:
        case "start":
            return min(start + point.number, end)
        case "end":
            return max(end + point.number, start)
        case "offset":
            return max(point.number, start)
        case _:
            found = at_times.get(point.number, -1)
            return end if found < 0 else max(found, start)


def parse_duration_ms(text: str) -> int:
    if not _DURATIONS.fullmatch(text):
        raise BadOffset(f"{text!r} is no duration: expected something like 90s, 15m, 48h or 1h30m")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _DURATION.findall(text))


def _halves(text: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(\d+)-(\d+|end|newest)", text)  # rpk's other spelling of a range
    return (found[1], ":", found[2]) if found else text.partition(":")


def _point(text: str) -> Point:
    if text in _WORDS:
        return Point(_WORDS[text])
    if not re.fullmatch(r"[+-]?\d{1,19}", text) or abs(int(text)) > NUMBER_MAX:
        raise BadOffset(f"{text!r} is no offset: expected start, end, a number, +N, -N, FROM:TO or @TIME")
    if text[0] == "+":
        return Point("start", int(text))
    return Point("end", int(text)) if text[0] == "-" else Point("offset", int(text))


def _times(text: str, now_ms: int) -> Range:
    found = _MOMENT.match(text)
    rest = text[found.end() :] if found else text
    if not text or rest[:1] not in ("", ":"):
        raise BadOffset(
            f"{'@' + text!r} is no time: expected @ and milliseconds, seconds, YYYY-MM-DD, YYYY-MM-DDTHH:MM:SSZ "
            "or a duration such as -48h"
        )
    first = Point("time", _moment(found[0], now_ms, now_ms)) if found else Point("start")
    last = rest[1:]
    if not last:
        if not found:
            raise BadOffset(f"{'@' + text!r} names no time")
        return Range(first)
    if last in ("end", "newest"):
        return Range(first, Point("end"))
    if not _MOMENT.fullmatch(last):
        raise BadOffset(f"{last!r} is no time to stop at")
    until = Point("time", _moment(last, now_ms, first.number if found else now_ms))
    if found and until.number < first.number:
        raise BadOffset(f"{'@' + text!r} ends before it begins")
    return Range(first, until)


def _moment(text: str, now_ms: int, after_ms: int) -> int:
    """A time in ms; durations count back from now, and forward from `after_ms`.

    None is before 1970: numbers below 0 are no times to a broker, and some of them are names of other places.
    """
    return min(max(0, _moment_of_any_year(text, now_ms, after_ms)), NUMBER_MAX)


def _moment_of_any_year(text: str, now_ms: int, after_ms: int) -> int:
    if text.isdigit():
        return int(text) if len(text) >= _MILLIS_DIGITS else int(text) * 1000
    if re.match(r"\d{4}-", text):
        # A bare dot before the zone is allowed, as in 07:51:41.Z.
        written = re.sub(r"\.(?=[Z+-])", "", text).replace("Z", "+00:00")
        try:
            moment = datetime.fromisoformat(written)
        except ValueError as wrong:
            raise BadOffset(f"{text!r} is no date: {wrong}") from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    duration_ms = parse_duration_ms(text.lstrip("+-"))
    return now_ms - duration_ms if text.startswith("-") else after_ms + duration_ms
