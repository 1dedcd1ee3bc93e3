"""Sample lines as an input would hand them on: gathered, parsed, with fields. Pure; for trying things out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from penstock.agent.inputs.http.settings import HttpSettings
from penstock.agent.inputs.syslog.parsing import SyslogParser
from penstock.agent.inputs.syslog.settings import SyslogSettings
from penstock.agent.multiline import Multiline
from penstock.agent.portion import MALFORMED, Fields, Origin, Portion
from penstock.agent.settings.model import InputSettings

_JSON = ("auto", "json", "ndjson")


def sample_portions(chosen: InputSettings, lines: Iterable[bytes], origin: Origin, now_ms: int) -> Iterator[Portion]:
    """One event in each. Lines have lost their line breaks."""
    own = chosen.own
    if isinstance(own, SyslogSettings):
        parser = SyslogParser(own.format, own.zone)
        return (_syslog(parser, own, line, origin, now_ms) for line in lines)
    if isinstance(own, HttpSettings) and own.format in _JSON:
        return (_http(line, origin) for line in lines)
    multiline = getattr(own, "multiline", None)
    positioned = _positioned(lines)
    if isinstance(multiline, Multiline):
        positioned = _gathered(multiline, positioned)
    return (Portion(origin, [value], positions=[start]) for value, start in positioned)


def _positioned(lines: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    start = 0
    for line in lines:
        yield line, start
        start += len(line) + 1


def _gathered(multiline: Multiline, lines: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    gatherer = multiline.gatherer()
    for line, start in lines:
        for event in gatherer.feed([line], [start], start + len(line) + 1, 0.0):
            yield event.value, event.start
    last = gatherer.flush()
    if last is not None:
        yield last.value, last.start


def _syslog(parser: SyslogParser, own: SyslogSettings, line: bytes, origin: Origin, now_ms: int) -> Portion:
    parsed = parser.parse(line, now_ms)
    if own.keep_raw:
        parsed.fields["raw"] = line.decode("utf-8", "backslashreplace")
    time_ms = now_ms if parsed.time_ms is None else parsed.time_ms
    marks = {0: MALFORMED} if parsed.malformed else {}
    return Portion(origin, [line], fields=[parsed.fields], timestamps_ms=[time_ms], marks=marks)


def _http(line: bytes, origin: Origin) -> Portion:
    """As if it had come with the content type that fits."""
    try:
        return Portion(origin, [line], fields=[msgspec.json.decode(line, type=Fields)])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Portion(origin, [line])
