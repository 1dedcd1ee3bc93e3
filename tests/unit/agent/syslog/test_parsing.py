"""Syslog messages as fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.agent.inputs.syslog.parsing import FACILITIES, SEVERITIES, SyslogParser

NOW_MS = int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp() * 1000)


def parsed(message: bytes | str, *, now_ms: int = NOW_MS, **given: Any) -> dict[str, Any]:
    data = message.encode() if isinstance(message, str) else message
    result = SyslogParser(given.get("format", "auto"), given.get("zone", UTC)).parse(data, now_ms)
    assert not result.malformed, message
    return result.fields


def malformed(message: bytes | str, **given: Any) -> bool:
    data = message.encode() if isinstance(message, str) else message
    result = SyslogParser(given.get("format", "auto"), UTC).parse(data, NOW_MS)
    if result.malformed:
        assert result.fields == {"message": data.decode("utf-8", "backslashreplace").rstrip("\r\n\0")}
    return result.malformed


def test_rfc_5424_with_structured_data_and_a_byte_order_mark() -> None:
    message = (
        '<165>1 2003-10-11T22:14:15.003123-07:00 web.example.org app 42 ID47 [a@1 n="3" s="q\\"b\\]s\\\\x\\y"][b@1]'
        " \ufeffan event"
    )
    assert parsed(message) == {
        "facility": "local4",
        "severity": "notice",
        "timestamp": "2003-10-11T22:14:15.003123-07:00",
        "host": "web.example.org",
        "app": "app",
        "pid": "42",
        "msgid": "ID47",
        "structured": {"a@1": {"n": "3", "s": 'q"b]s\\x\\y'}, "b@1": {}},
        "message": "an event",
    }


def test_nil_values_are_no_fields() -> None:
    assert parsed("<34>1 - - - - - -") == {"facility": "auth", "severity": "crit", "message": ""}
    assert parsed("<34>1 - - - - - - hi")["message"] == "hi"


def test_a_repeated_parameter_is_a_list_and_an_unescaped_bracket_is_forgiven() -> None:
    assert parsed('<34>1 - - - - - [o ip="1" ip="2" ip="3" v="a[0]"] x')["structured"] == {
        "o": {"ip": ["1", "2", "3"], "v": "a[0]"}
    }


BSD: list[tuple[str, dict[str, str]]] = [
    ("<34>Oct 11 22:14:15 web su: no", {"host": "web", "app": "su", "message": "no"}),
    ("<34>Oct  1 22:14:15 web su[12]: no", {"host": "web", "app": "su", "pid": "12", "message": "no"}),
    ("Oct 11 22:14:15 web postfix/smtpd[12]: no", {"host": "web", "app": "postfix/smtpd", "pid": "12"}),
    ("<13>Nov 16 10:00:00 app[7]: no host", {"app": "app", "pid": "7", "message": "no host"}),
    ("<13>Nov 16 10:00:00 WEB app: capitals are no zone", {"host": "WEB", "app": "app"}),
    (
        "<13>Nov 16 10:00:00 web last message repeated 3 times",
        {"host": "web", "message": "last message repeated 3 times"},
    ),
    ("<30>Nov 16 10:00:00 2001:db8::1 app: six", {"host": "2001:db8::1", "app": "app", "message": "six"}),
    (
        "<13>2026-11-16T10:00:00.5+01:00 web app[1]: iso",
        {"timestamp": "2026-11-16T10:00:00.500000+01:00", "host": "web"},
    ),
    ("<13>2026-11-16 10:00:00 web app: iso", {"timestamp": "2026-11-16T10:00:00+00:00", "app": "app"}),
    ("<166>Nov 16 2026 10:00:00 fw : %ASA-6-302013: Built", {"host": "fw", "app": "%ASA-6-302013", "message": "Built"}),
    ("<166>Nov 16 2026 10:00:00 fw: %ASA-6-302013: Built", {"host": "fw", "app": "%ASA-6-302013", "message": "Built"}),
    ("<166>Nov 16 2026 10:00:00: %ASA-6-302013: Built", {"app": "%ASA-6-302013", "message": "Built"}),
    (
        "<189>29: router1: *Nov  1 18:48:50.483 UTC: %SYS-5-CONFIG_I: done",
        {"host": "router1", "timestamp": "2026-11-01T18:48:50.483000+00:00", "app": "%SYS-5-CONFIG_I"},
    ),
    ("<189>237: Nov  1 18:48:50: %SYS-5-CONFIG_I: done", {"app": "%SYS-5-CONFIG_I", "message": "done"}),
    ("<13>just a text", {"facility": "user", "severity": "notice", "message": "just a text"}),
    ("<13>1 item", {"message": "1 item"}),
    ("<13>app[1]: no date", {"app": "app", "pid": "1", "message": "no date"}),
]


@pytest.mark.parametrize(("message", "wanted"), BSD)
def test_rfc_3164_as_it_is_found(message: str, wanted: dict[str, str]) -> None:
    found = parsed(message)
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("now", "date", "wanted"),
    [
        ((2026, 12, 31, 23, 59), "Jan  1 00:00:05", "2027-01-01"),
        ((2027, 1, 1, 0, 1), "Dec 31 23:59:58", "2026-12-31"),
        ((2027, 1, 1, 0, 1), "Jan  1 00:00:58", "2027-01-01"),
        ((2026, 7, 1, 0, 0), "Jun 30 10:00:00", "2026-06-30"),
        ((2025, 3, 1, 0, 0), "Feb 29 10:00:00", "2024-02-29"),
    ],
)
def test_a_date_without_a_year_is_the_nearest_one(now: tuple[int, ...], date: str, wanted: str) -> None:
    now_ms = int(datetime(*now, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type,misc]  # year to second
    assert parsed(f"<13>{date} web app: x", now_ms=now_ms)["timestamp"].startswith(wanted)


def test_the_zone_of_a_date_that_names_none() -> None:
    result = SyslogParser(zone=timezone(timedelta(hours=2))).parse(b"<13>Nov 16 10:00:00 web app: x", NOW_MS)
    assert result.fields["timestamp"] == "2026-11-16T10:00:00+02:00"
    assert result.time_ms == int(datetime(2026, 11, 16, 8, tzinfo=UTC).timestamp() * 1000)


def test_a_remembered_date_is_not_taken_for_another() -> None:
    parser = SyslogParser(zone=UTC)

    def date(text: str, now_ms: int = NOW_MS) -> Any:
        return parser.parse(text.encode(), now_ms).fields["timestamp"]

    assert date("<13>Nov 16 10:00:00 web app: x") == "2026-11-16T10:00:00+00:00"
    assert date("<13>Nov 16 10:00:00 web app: x") == "2026-11-16T10:00:00+00:00"
    assert date("<13>Nov 16 10:00:00 2020 web app: x") == "2020-11-16T10:00:00+00:00"
    assert date("<13>Nov 16 10:00:01 web app: x") == "2026-11-16T10:00:01+00:00"
    assert date("<13>Nov 16 10:00:00 web app: x", NOW_MS + 366 * 86_400_000) == "2027-11-16T10:00:00+00:00"


@pytest.mark.parametrize(
    "message",
    [
        *("", "hello", "<", "<>", "<192>x", "<999>x", "<34", "34>x", "<-1>x", "<1234>x"),
        *("<34>1 2003-13-11T22:14:15Z a b c d - x", "<34>1 2003-10-11T22:14:15Z a b c", "<34>1 - a b c d [x"),
        *('<34>1 - a b c d [x y="1] z', "<34>1 - a b c d x", "<34>1 - a b c d [] x", "<34>1 - a b c d [a]x"),
    ],
)
def test_what_is_not_syslog_goes_on_as_it_is(message: str) -> None:
    assert malformed(message)


def test_a_format_that_was_asked_for_is_the_only_one() -> None:
    assert malformed("<34>Oct 11 22:14:15 web su: no", format="rfc5424")
    assert parsed("<34>1 - - - - - - x", format="rfc3164")["message"] == "1 - - - - - - x"


def test_bytes_that_are_not_utf8_stay_visible() -> None:
    assert parsed(b"<13>caf\xe9")["message"] == "caf\\xe9"


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
NAME = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='="]'), min_size=1, max_size=32)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


def told(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")


@given(
    priority=st.integers(0, 191),
    time=st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
    words=st.tuples(WORD, WORD, WORD, WORD),
    structured=st.dictionaries(NAME, st.dictionaries(NAME, TEXT, max_size=3), max_size=3),
    text=TEXT,
)
def test_what_rfc_5424_can_say_is_understood(
    priority: int, time: datetime, words: tuple[str, ...], structured: dict[str, dict[str, str]], text: str
) -> None:
    elements = "".join(
        f"[{name}{''.join(f' {key}={chr(34)}{told(value)}{chr(34)}' for key, value in inner.items())}]"
        for name, inner in structured.items()
    )
    message = f"<{priority}>1 {time.isoformat()} {' '.join(words)} {elements or '-'} \ufeff{text}"
    found = parsed(message)
    assert found["facility"] == FACILITIES[priority // 8]
    assert found["severity"] == SEVERITIES[priority % 8]
    assert found["timestamp"] == time.isoformat()
    assert [found.get(name, "-") for name in ("host", "app", "pid", "msgid")] == list(words)
    assert found.get("structured", {}) == structured
    assert found["message"] == text.rstrip("\r\n\0")


@given(st.binary(max_size=200), st.sampled_from(["auto", "rfc3164", "rfc5424"]), st.sampled_from([None, UTC]))
@example(b"<13>0001-01-01T00:00:00+23:59 a b: c", "auto", None)
@example(b"<13>9999-12-31T23:59:59-23:59 a b: c", "auto", None)
@example(b"<13>9999-12-31 23:59:59 a b: c", "auto", None)
@example(b"<13>0001-01-01 00:00:00 a b: c", "auto", None)
@example(b"<13>1 0001-01-01T00:00:00+23:59 a b c d -", "rfc5424", None)
@example("<١٣>x".encode(), "auto", None)
def test_no_bytes_make_it_raise(data: bytes, format: Any, zone: Any) -> None:
    result = SyslogParser(format, zone).parse(data, NOW_MS)
    assert isinstance(result.fields["message"], str)


@given(
    st.lists(
        st.sampled_from(["<13>", "1 ", "Nov 16 ", "10:00:00", " ", "[a ", 'b="', "]", ": ", "app", "-", "2026-", "\\"])
    )
)
def test_no_pieces_of_messages_make_it_raise(pieces: list[str]) -> None:
    SyslogParser("auto", UTC).parse("".join(pieces).encode(), NOW_MS)
