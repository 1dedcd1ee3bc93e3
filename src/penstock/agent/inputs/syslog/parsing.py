"""Syslog messages as fields: RFC 5424, and RFC 3164 as it is found in the wild. Pure; never raises.

The fields: timestamp (ISO 8601), host, app, pid, msgid, facility, severity (both by name), message, structured. What a
message does not say has no field.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from typing import Any, Final, Literal, NamedTuple

from penstock.agent.inputs.syslog.dates import Moment, iso_ms, read_date

Format = Literal["auto", "rfc3164", "rfc5424"]

FACILITIES: Final = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp"),
    *("audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"),
)
SEVERITIES: Final = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_PRIORITIES: Final = {
    str(code): (facility, severity)
    for code, (facility, severity) in enumerate((f, s) for f in FACILITIES for s in SEVERITIES)
}

_PRIORITY: Final = re.compile(r"<(\d{1,3})>", re.ASCII)
_LOOKS_LIKE_5424: Final = re.compile(r"<\d{1,3}>\d{1,2} (?:- |\d{4}-\d\d-\d\dT)", re.ASCII)
_HEAD_5424: Final = re.compile(r"<(\d{1,3})>1 ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ", re.ASCII)
_TIME_5424: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_ELEMENT_ID: Final = re.compile(r'\[([^ =\]"]+)')
# Brackets in values must be escaped, but many senders do not; the quote decides.
_PARAMETER: Final = re.compile(r' +([^ =\]"]+)="((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED: Final = re.compile(r'\\(["\\\]])')

_CISCO_NUMBER: Final = re.compile(r"\d{1,10}: +", re.ASCII)
_MORE_DATE: Final = re.compile(r" (?:\d{4}[ :]|UTC|GMT|Z|[A-Z]{2,5}:)", re.ASCII)
_CISCO_HOST: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*): +(?=[*.]?(?:[A-Z][a-z]{2} |\d{4}-))", re.ASCII)
_HOST: Final = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._:%\-]*)(?: +|$)", re.ASCII)
_TAG: Final = re.compile(
    r"([^\s:\[\]]{1,128})(?:\[([^\]\s]{0,128})\])?:(?: |$)|([^\s:\[\]]{1,128})\[([^\]\s]{1,128})\] "
)


class Parsed(NamedTuple):
    """`time_ms` is None when the message does not say it, or says it in no way that is understood."""

    fields: dict[str, Any]
    time_ms: int | None
    malformed: bool


class SyslogParser:
    """`zone` is the one of dates that name none; None is this machine's local time."""

    def __init__(self, format: Format = "auto", zone: tzinfo | None = None) -> None:
        self._format, self._zone = format, zone
        self._memo: tuple[str, int, Moment] | None = None

    def parse(self, message: bytes, now_ms: int) -> Parsed:
        text = message.decode("utf-8", "backslashreplace").rstrip("\r\n\0")
        modern = self._format == "rfc5424" or (
            self._format == "auto" and _LOOKS_LIKE_5424.match(text.removeprefix("\ufeff")) is not None
        )
        parsed = _parse_5424(text.removeprefix("\ufeff")) if modern else self._parse_3164(text, now_ms)
        return parsed or Parsed({"message": text}, None, True)

    def _parse_3164(self, text: str, now_ms: int) -> Parsed | None:
        fields: dict[str, Any] = {}
        at = 0
        priority = _PRIORITY.match(text)
        if priority is not None:
            names = _PRIORITIES.get(_plain(priority[1]))
            if names is None:
                return None
            fields["facility"], fields["severity"] = names
            at = priority.end()
        at, host = _skip_cisco(text, at)
        moment = self._date(text, at + (text[at : at + 1] in ("*", ".")), now_ms)
        if moment is None:
            if priority is None:
                return None
            self._take_content(text, at, fields)
            return Parsed(fields, None, False)
        fields["timestamp"] = moment.iso
        at = moment.end
        if host:
            fields["host"] = host
        if text.startswith(":", at):
            self._take_content(text, _skip_blanks(text, at + 1), fields)
        else:
            self._take_content(text, _take_host(text, _skip_blanks(text, at), fields), fields)
        return Parsed(fields, moment.ms, False)

    def _date(self, text: str, at: int, now_ms: int) -> Moment | None:
        """Messages of one second mostly have the same date: the last one is remembered."""
        start, minute = text[at : at + 15], now_ms // 60_000
        if self._memo is not None and self._memo[:2] == (start, minute) and text[at + 15 : at + 16] == " ":
            moment = self._memo[2]
            # A year or a zone may follow where there was none before.
            if not _MORE_DATE.match(text, at + 15):
                return moment._replace(end=at + 15)
        moment_or_none = read_date(text, at, now_ms, self._zone)
        if moment_or_none is not None and moment_or_none.end == at + 15:
            self._memo = (start, minute, moment_or_none)
        return moment_or_none

    def _take_content(self, text: str, at: int, fields: dict[str, Any]) -> None:
        tag = _TAG.match(text, at)
        if tag is None:
            fields["message"] = text[at:]
            return
        fields["app"] = tag[1] or tag[3]
        pid = tag[2] or tag[4]
        if pid:
            fields["pid"] = pid
        fields["message"] = text[tag.end() :].removeprefix("\ufeff")


def _skip_cisco(text: str, at: int) -> tuple[int, str]:
    """Cisco puts a number and its name before the date: `29: router1: *Mar  1 18:48:50.483 UTC: %SYS-5-…`."""
    number = _CISCO_NUMBER.match(text, at)
    if number is not None:
        at = number.end()
    named = _CISCO_HOST.match(text, at)
    return (named.end(), named[1]) if named is not None else (at, "")


def _take_host(text: str, at: int, fields: dict[str, Any]) -> int:
    """The word after the date is the host, unless it is the tag already: local senders leave the host out."""
    tag = _TAG.match(text, at)
    if tag is not None:
        if tag[2] is None and tag[1] and text.startswith("%", _skip_blanks(text, tag.end())):
            fields["host"] = tag[1]
            return _skip_blanks(text, tag.end())
        return at
    host = _HOST.match(text, at)
    if host is None:
        return at
    fields["host"] = host[1]
    # `fw1 : %ASA-6-302013: …`
    return _skip_blanks(text, host.end() + 1) if text.startswith(": ", host.end()) else host.end()


def _skip_blanks(text: str, at: int) -> int:
    while text.startswith(" ", at):
        at += 1
    return at


def _plain(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _parse_5424(text: str) -> Parsed | None:
    head = _HEAD_5424.match(text)
    if head is None:
        return None
    priority, time, host, app, pid, msgid = head.groups()
    names = _PRIORITIES.get(_plain(priority))
    if names is None:
        return None
    fields: dict[str, Any] = {"facility": names[0], "severity": names[1]}
    time_ms: int | None = None
    if time != "-":
        time_ms = iso_ms(time) if _TIME_5424.fullmatch(time) else None
        if time_ms is None:
            return None
        fields["timestamp"] = time
    said = {"host": host, "app": app, "pid": pid, "msgid": msgid}
    fields |= {name: value for name, value in said.items() if value != "-"}
    structured, at = _structured(text, head.end())
    if at < 0:
        return None
    if structured:
        fields["structured"] = structured
    fields["message"] = text[at + 1 :].removeprefix("\ufeff")
    return Parsed(fields, time_ms, False)


def _structured(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Structured data and the place behind it, -1 when it is broken."""
    elements: dict[str, Any] = {}
    if text.startswith("-", at):
        at += 1
    else:
        begin = at
        while text.startswith("[", at):
            named = _ELEMENT_ID.match(text, at)
            if named is None:
                return elements, -1
            at = named.end()
            parameters = elements.setdefault(named[1], {})
            while (parameter := _PARAMETER.match(text, at)) is not None:
                _add(parameters, parameter[1], _ESCAPED.sub(r"\1", parameter[2]))
                at = parameter.end()
            if not text.startswith("]", at):
                return elements, -1
            at += 1
        if at == begin:
            return elements, -1
    return elements, at if at == len(text) or text[at] == " " else -1


def _add(parameters: dict[str, Any], name: str, value: str) -> None:
    """A name may stand there more than once; then its values are a list."""
    known = parameters.get(name)
    if known is None:
        parameters[name] = value
    elif isinstance(known, list):
        known.append(value)
    else:
        parameters[name] = [known, value]
