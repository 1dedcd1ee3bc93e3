"""Good messages and what can become of them, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

SYSLOG: Final = (
    b"<34>1 2026-11-16T10:00:00.003Z web.example.org su 42 ID47 - 'su root' failed",
    b'<165>1 2026-11-16T10:00:00.000003-07:00 192.0.2.1 app 87 - [a@1 n="3" s="q\\"b\\]"][b@1 x="y"] \xef\xbb\xbfevent',
    b"<13>Nov 16 10:00:00 web postfix/smtpd[12]: connect from unknown",
    b"<189>29: router1: *Nov  1 18:48:50.483 UTC: %SYS-5-CONFIG_I: Configured from console",
    b"<13>2026-11-16T10:00:00.5+01:00 web app[1]: iso",
)
BODIES: Final = (
    b'{"a": 1, "b": [true, null, "text"], "c": {"d": 1.5e3}}',
    b'[{"a": 1}, {"b": "\\u00e9"}]',
    b'{"a": 1}\n{"b": 2}\n{"c": 3}\n',
    b"one line\nanother\n",
)
_NASTY: Final = (
    *(b"<", b">", b"[", b"]", b'"', b"\\", b"\0", b"\r", b"\n", b" ", b"-", b"999999999 <", b"1 ", b"\xff\xfe", b"%s"),
    *(b"\xf0\x9f\x92", b"{" * 50, b"[" * 50, b"9" * 400, b"1e999", b"\\ud800", b"\xe2\x80\xa8", b"x" * 5_000),
)


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.randrange(256)


def _insert(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = chance.choice(_NASTY)


def _delete(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    del data[at : at + chance.randrange(1, 20)]


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data) + 1) :]


def _repeat(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = data[at : at + 10] * chance.randrange(1, 10)


_WAYS: Final[tuple[Callable[[bytearray, random.Random], None], ...]] = (_flip, _insert, _delete, _cut, _repeat)


def malformed(goods: tuple[bytes, ...], chance: random.Random) -> bytes:
    """A good one with a few faults, or nothing but random bytes."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(200))
    data = bytearray(chance.choice(goods))
    for _ in range(chance.randrange(1, 5)):
        chance.choice(_WAYS)(data, chance)
    return bytes(data)
