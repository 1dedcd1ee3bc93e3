"""Records of the topic of history: all series of one minute, as differences from the minute before. Pure.

    form 1 · kind 0 (whole) or 1 (difference) · minute since 1970 · checksum of the series, four bytes
    whole: how many series, then the kind, name and number of each, as texts
    a number for each series: 0 when nothing was told, else 1 + the zigzag of its difference in thousandths

Numbers are varints of any length. A whole record names the series and counts from nothing; one comes with every tenth
minute, with every new series, and first of all, so that a reader may begin anywhere and knows soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zlib import crc32

from penstock.console.sampler.past import Measured

FORM: Final = 1
WHOLE, DIFFERENCE = 0, 1
WHOLE_EVERY: Final = 10
SERIES_MAX: Final = 5_000
"""A record that claims more is none of ours."""
_TEXT_MAX: Final = 1_024
_PARTS: Final = 1_000
_BITS_MAX: Final = 140


class NoMinute(ValueError):
    """Bytes that are no record of this topic."""


class MinutesOut:
    """Makes records of minutes that follow each other."""

    def __init__(self) -> None:
        self._series: list[Measured] = []
        self._known: set[Measured] = set()
        self._before: list[int] = []
        self._left = 0

    def record(self, minute: int, means: Mapping[Measured, float]) -> bytes:
        if self._left <= 0 or any(of not in self._known for of in means):
            self._known = set(means)
            self._series = sorted(of for of in means if len(of.name.encode()) <= _TEXT_MAX)[:SERIES_MAX]
            self._before = [0] * len(self._series)
            self._left = WHOLE_EVERY
            kind, names = WHOLE, _names(self._series)
        else:
            kind, names = DIFFERENCE, b""
        self._left -= 1
        out = bytearray((FORM, kind))
        _put(out, minute)
        out += _checksum(self._series) + names
        for at, of in enumerate(self._series):
            mean = means.get(of)
            if mean is None:
                out.append(0)
                continue
            value = round(mean * _PARTS)
            _put(out, 1 + _zigzag(value - self._before[at]))
            self._before[at] = value
        return bytes(out)


class MinutesIn:
    """Reads them back, in order. `told` is what they say: means by minute of each series."""

    def __init__(self) -> None:
        self.told: dict[Measured, dict[int, float]] = {}
        self._into: list[dict[int, float]] = []
        self._before: list[int] = []
        self._checksum = b""

    def take(self, record: bytes) -> None:
        """NoMinute for bytes that are none; a difference from what was not read says nothing."""
        try:
            self._take(record)
        except (IndexError, UnicodeDecodeError) as broken:
            raise NoMinute(str(broken)) from None

    def _take(self, record: bytes) -> None:
        if record[0] != FORM or record[1] not in (WHOLE, DIFFERENCE):
            raise NoMinute("of another form")
        minute, at = _get(record, 2)
        checksum, at = record[at : at + 4], at + 4
        if record[1] == WHOLE:
            series, at = _series_of(record, at)
            if _checksum(series) != checksum:
                raise NoMinute("its series are not those that it was made of")
            self._into = [self.told.setdefault(of, {}) for of in series]
            self._before, self._checksum = [0] * len(series), checksum
        elif checksum != self._checksum:
            return
        before = self._before
        for place, minutes in enumerate(self._into):
            code = record[at]
            at += 1
            if code > 127:
                code, at = _get(record, at - 1)
            if code:
                # 1 + zigzag: odd codes are 0 and above, even ones below.
                before[place] += (code >> 1) if code & 1 else -(code >> 1)
                minutes[minute] = before[place] / _PARTS
        if at != len(record):
            raise NoMinute(f"{len(record) - at} bytes too many")


def _names(series: list[Measured]) -> bytes:
    out = bytearray()
    _put(out, len(series))
    for of in series:
        for text in of:
            encoded = text.encode()
            _put(out, len(encoded))
            out += encoded
    return bytes(out)


def _series_of(record: bytes, at: int) -> tuple[list[Measured], int]:
    count, at = _get(record, at)
    if count > SERIES_MAX:
        raise NoMinute(f"{count} series")
    series = []
    for _ in range(count):
        texts = []
        for _ in Measured._fields:
            size, at = _get(record, at)
            if size > _TEXT_MAX:
                raise NoMinute(f"a name of {size} bytes")
            texts.append(record[at : at + size].decode())
            at += size
        series.append(Measured(*texts))
    return series, at


def _checksum(series: list[Measured]) -> bytes:
    return crc32(_names(series)).to_bytes(4, "big")


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _put(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _get(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > _BITS_MAX:
            raise NoMinute("a number without end")
