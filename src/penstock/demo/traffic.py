"""A day of requests to a shop, as lines of an access log. Pure: chance and both clocks come in.

    203.0.113.7 - - [2026-11-01T08:00:00.123Z] "GET /products/42 HTTP/1.1" 200 5120 "-" "Mozilla/5.0 …" 0.021 17 1793…

It is the usual combined format with how long the request took, the number of the line (none is used twice) and the
moment it was written, in milliseconds. The time in brackets is the log's own clock: a day of it takes a minute.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Final

DAY_S: Final = 86_400
MIDNIGHT: Final = datetime(2026, 11, 1, tzinfo=UTC)
"""When the log begins."""

PATTERN: Final = (
    r"^(?P<client>\S+) - (?P<user>\S+) \[(?P<time>(?P<day>\d{4}-\d\d-\d\d)T[\d:.]+Z)\] "
    r'"(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+" (?P<status>\d{3}) (?P<bytes>\d+) '
    r'"(?P<referer>[^"]*)" "(?P<agent>[^"]*)" (?P<took_s>[\d.]+) (?P<line>\d+) (?P<written_ms>\d+)$'
)
SCHEMA: Final = (
    "client STRING, user STRING, time TIMESTAMP, day DATE, method STRING, path STRING, status INT, bytes BIGINT, "
    "referer STRING, agent STRING, took_s DOUBLE, line BIGINT, written_ms BIGINT"
)

_PATHS: Final = (
    *(("GET", f"/products/{number}", 5_200) for number in range(1, 41)),
    *(("GET", "/", 8_400) for _ in range(14)),
    *(("GET", "/search?q=penstock", 6_100) for _ in range(8)),
    *(("GET", "/static/app.js", 48_000) for _ in range(12)),
    *(("GET", "/static/app.css", 9_000) for _ in range(12)),
    *(("POST", "/cart", 350) for _ in range(8)),
    *(("POST", "/checkout", 420) for _ in range(4)),
    *(("GET", "/health", 15) for _ in range(2)),
)
_STATUSES: Final = (
    *(200 for _ in range(880)), *(304 for _ in range(40)), *(301 for _ in range(20)), *(404 for _ in range(38)),
    *(403 for _ in range(6)), *(429 for _ in range(4)), *(500 for _ in range(8)), *(503 for _ in range(4)),
)  # fmt: skip
_AGENTS: Final = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "curl/8.14.1",
)
_REFERERS: Final = ("-", "-", "https://shop.example/", "https://shop.example/search", "https://news.example/today")
_USERS: Final = ("-", "-", "-", "-", "-", "-", "ada", "grace", "edsger")
_NOT_FOUND, _FAILED = 404, 500
_WAVES: Final = ((0.6, 2 * math.pi, 0.42), (0.28, 4 * math.pi, 0.27))
"""Of the day's curve: how high, how quick, and where it begins: people sleep, and shop before noon and after dinner."""

OUTAGE_HOUR: Final = 14
"""In this hour of the day a part of the shop is down, so that there is something to find in the table."""
_OUTAGE_SHARE: Final = 0.25


def busyness(day_share: float) -> float:
    """How much is asked for at a time of the day; 1 on average, least at four in the morning, most in the evening."""
    return 1 + sum(size * math.sin(turns * (day_share - begin)) for size, turns, begin in _WAVES)


def lines_until(elapsed_s: float, seconds: float, lines_per_s: float) -> int:
    """How many lines are written when so much of the day is over: the integral of `busyness`, days after days."""
    share = elapsed_s / seconds
    waves = (
        size / turns * (math.cos(turns * -begin) - math.cos(turns * (share - begin))) for size, turns, begin in _WAVES
    )
    return int((share + sum(waves)) * seconds * lines_per_s)


def log_time(elapsed_s: float, seconds: float, begin: datetime = MIDNIGHT) -> datetime:
    """What the log's clock shows after so many seconds, when a day of it takes `seconds`.

    When the day is over it stands: a machine that takes longer still tells of one day.
    """
    return begin + timedelta(seconds=min(elapsed_s / seconds * DAY_S, DAY_S - 1))


class Traffic:
    """Lines, one after the other. The same seed gives the same requests."""

    def __init__(self, chance: random.Random, *, broken_share: float) -> None:
        self._chance, self._broken_share = chance, broken_share
        self._clients = [
            f"{chance.randrange(1, 224)}.{chance.randrange(256)}.{chance.randrange(256)}" for _ in range(99)
        ]

    def line(self, number: int, at: datetime, written_ms: int) -> tuple[bytes, bool]:
        """A line without its end, and whether it is broken."""
        chance = self._chance
        method, path, size = chance.choice(_PATHS)
        down = at.hour == OUTAGE_HOUR and chance.random() < _OUTAGE_SHARE
        status = 503 if down else chance.choice(_STATUSES)
        size = 0 if status == 304 else 157 if status >= _NOT_FOUND else size + chance.randrange(900)
        took_s = chance.expovariate(25.0) + (2.0 if status >= _FAILED else 0.002)
        client = f"{chance.choice(self._clients)}.{chance.randrange(1, 255)}"
        head = f"{client} - {chance.choice(_USERS)} [{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z]"
        request = f'"{method} {path} HTTP/1.1" {status} {size}'
        tail = f'"{chance.choice(_REFERERS)}" "{chance.choice(_AGENTS)}" {took_s:.3f} {number} {written_ms}'
        if chance.random() >= self._broken_share:
            return f"{head} {request} {tail}".encode(), False
        return self._broken(head, request, tail), True

    def _broken(self, head: str, request: str, tail: str) -> bytes:
        """As they are found in real logs. The number at the end stays: it is how the demo knows them again."""
        match self._chance.randrange(3):
            case 0:  # somebody spoke TLS to a port without it
                return f'{head} "\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01\\xFC\\x03\\x03" 400 157 {tail}'.encode()
            case 1:  # the line's beginning went with a crash
                return f"{request[len(request) // 2 :]} {tail}".encode()
            case _:  # bytes that are no UTF-8
                return head.encode() + b' "GET /caf\xe9/\xff HTTP/1.1" 400 157 ' + tail.encode()


def number_of(line: bytes) -> int:
    """The number of a line, broken or not; -1 when there is none."""
    words = line.rsplit(b" ", 2)
    return int(words[1]) if len(words) == 3 and words[1].isdigit() else -1
