r"""Access logs of web servers: common and combined format of Apache, nginx' own, also with a last quoted field. Pure.

    203.0.113.7 - ann [16/Nov/2026:10:00:00 +0000] "GET /cart HTTP/1.1" 200 512 "https://example.org/" "curl/8.5"

All lines are read by one call: their pattern matches every line, understood or not, so places stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from penstock.agent.routing.moments import MONTHS, apache_ms
from penstock.agent.transforms.parsing.parser import Parsed, Parser, Text, as_str
from penstock.conditions.paths import Fields

FORMATS: Final = ("auto", "common", "combined", "nginx")

# A quote inside quotes is escaped by Apache and nginx alike. No class takes a line break: lines are matched together.
_QUOTED = r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"'
_REQUEST = r'"(?:([A-Z]{1,20}) ([^\s"\\]++) (HTTP/[\d.]{1,4})"|([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)")'
_HEAD = rf"(\S++) \S++ ([^\[\n]{{1,512}}?) \[([^\]\n]{{1,64}})\] {_REQUEST} (\d{{3}}) (\d++|-)"
_TAIL = rf" {_QUOTED} {_QUOTED}"
_ENDS: Final = {
    "auto": rf"(?:{_TAIL}(?: {_QUOTED})?+)?+",
    "common": "()()()",
    "combined": rf"{_TAIL}()",
    "nginx": rf"{_TAIL}(?: {_QUOTED})?+",
}
_ISO_REMEMBERED_MAX: Final = 8_192


def access_log_parser(form: str = "auto") -> Parser:
    """Fields client user time method path protocol status bytes referrer agent, and forwarded if there is a last one.

    `-` is null, or 0 for bytes; time is ISO 8601; a request that is none is the path.
    """
    line = rf"(?:{_HEAD}{_ENDS[form]}[ \r]*+$|(.*+))"
    many, one = re.compile(f"^{line}", re.MULTILINE), re.compile(line, re.DOTALL)
    iso = _Times()
    has_tail = form != "common"

    def parse(texts: Sequence[Text]) -> Parsed:
        return _fields_of(_rows(texts, many, one), iso, has_tail)

    return parse


def _rows(texts: Sequence[Text], many: re.Pattern[str], one: re.Pattern[str]) -> list[tuple[str, ...]]:
    if texts and isinstance(texts[0], bytes):
        joined = b"\n".join(texts).decode("utf-8", "backslashreplace")  # type: ignore[arg-type]  # all are of one kind
    else:
        joined = "\n".join(map(as_str, texts))
    rows: list[tuple[str, ...]] = many.findall(joined) if joined.count("\n") == len(texts) - 1 else []
    if len(rows) != len(texts):
        # An event of several lines is among them.
        rows = [one.findall(as_str(text))[0] for text in texts]
    return rows


def _fields_of(rows: Sequence[tuple[str, ...]], iso: _Times, has_tail: bool) -> Parsed:
    found: list[Fields] = []
    why: dict[int, str] = {}
    add, known = found.append, iso.known
    for client, user, time, method, path, protocol, request, status, size, referrer, agent, forwarded, _ in rows:
        if not status:
            why[len(found)] = "not a line of an access log"
            add({})
            continue
        fields: Fields = {
            "client": client,
            "user": None if user == "-" else user,
            "time": known.get(time) or iso(time),
            "method": method or None,
            "path": path or (None if request == "-" else request),
            "protocol": protocol or None,
            "status": int(status),
            "bytes": 0 if size == "-" else int(size),
        }
        if has_tail:
            fields["referrer"] = None if referrer in ("-", "") else referrer
            fields["agent"] = None if agent in ("-", "") else agent
            if forwarded:
                fields["forwarded"] = None if forwarded == "-" else forwarded
        add(fields)
    return Parsed(found, why)


class _Times:
    """Times as ISO 8601; many lines have the same. What is no time stays as it is."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        if len(self.known) >= _ISO_REMEMBERED_MAX:
            self.known.clear()
        self.known[text] = _iso(text)
        return self.known[text]


def _iso(text: str) -> str:
    if apache_ms(text) is None:
        return text
    return f"{text[7:11]}-{MONTHS[text[3:6]]:02}-{text[:2]}T{text[12:20]}{text[21:24]}:{text[24:26]}"
