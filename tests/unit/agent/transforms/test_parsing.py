"""parse: what lines mean, and what becomes of those that mean nothing."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.agent.transforms.parsing.access_log import access_log_parser
from penstock.agent.transforms.parsing.csv_rows import csv_parser
from penstock.agent.transforms.parsing.logfmt import parse_logfmt
from tests.properties import examples
from tests.unit.agent.transforms.chains import apply, fields, header, parcel, steps

few = settings(max_examples=examples(40))

COMBINED = (
    '203.0.113.7 - ann [16/Nov/2026:09:00:00 +0100] "GET /cart?id=7 HTTP/1.1" 200 512 "https://example.org/" "curl/8.5"'
)
UNDERSTOOD = {
    "client": "203.0.113.7",
    "user": "ann",
    "time": "2026-11-16T09:00:00+01:00",
    "method": "GET",
    "path": "/cart?id=7",
    "protocol": "HTTP/1.1",
    "status": 200,
    "bytes": 512,
    "referrer": "https://example.org/",
    "agent": "curl/8.5",
}


def test_json_that_nothing_changes_goes_on_byte_by_byte() -> None:
    line = b'{ "big": 123456789012345678901234567890, "exact": 1.10 }'
    assert parcel(steps('parse = "json"'), line).values == [line]


@pytest.mark.parametrize("line", ["", "nonsense", "[1]", "17", '"text"', '{"a":', "{" * 5_000, '{"a":NaN}'])
def test_what_is_no_json_object_goes_on_as_it_is_and_marked(line: str) -> None:
    result = apply(steps('parse = "json"'), line, '{"a":1}')
    (only,) = result.parcels
    assert only.values == [line.encode(), b'{"a":1}']
    assert (header(only, 0, "agent.mark"), header(only, 1, "agent.mark")) == ("malformed", None)
    assert (header(only, 0, "agent.error") or "").startswith("step 1 (parse json): ")
    assert (result.failed, result.dead, result.filtered) == (1, 0, 0)


def test_json_that_is_not_utf8_fails_and_keeps_its_bytes() -> None:
    assert parcel(steps('parse = "json"'), b'{"a":"\xff"}').values == [b'{"a":"\xff"}']


def test_a_field_is_parsed_in_the_place_of_the_line() -> None:
    text = steps('parse = "json"', 'parse = "logfmt"\nfrom = "log.text"')
    line = json.dumps({"log": {"text": "a=1 b=2", "at": 5}})
    assert fields(text, line) == [{"log": {"at": 5}, "a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('into = "got"', {"got": {"a": "1"}}),
        ('into = "got.it"', {"got": {"it": {"a": "1"}}}),
        ('into = "got_*"', {"got_a": "1"}),
        ("keep_original = true", {"original": "a=1", "a": "1"}),
        ('keep_original = true\ninto = "got"', {"original": "a=1", "got": {"a": "1"}}),
        ('types = { a = "int", b = "int" }', {"a": 1}),
    ],
)
def test_what_was_understood_goes_where_it_is_told(options: str, expected: dict[str, Any]) -> None:
    assert fields(steps(f'parse = "logfmt"\n{options}'), "a=1") == [expected]


def test_a_field_that_is_not_there_or_no_text_cannot_be_parsed() -> None:
    text = steps('parse = "json"', 'parse = "json"\nfrom = "inner"\non_error = "drop"')
    result = apply(text, '{"inner":"{\\"a\\":1}"}', "{}", '{"inner":7}')
    assert [each.values for each in result.parcels] == [[b'{"a":1}']]
    assert (result.failed, result.filtered, result.reasons) == (2, 2, {"step 2 (parse json)": 2})


def test_what_fails_goes_to_dead_letters_if_there_are_any_and_says_why() -> None:
    text = steps('parse = "json"', head='topic = "t"\ndead_letters = "broken"')
    result = apply(text, '{"a":1}', "x", '{"a":2}', positions=[10, 20, 30])
    good, dead = result.parcels
    assert (good.topic, good.values) == ("t", [b'{"a":1}', b'{"a":2}'])
    assert (dead.topic, dead.values, header(dead, 0, "host")) == ("broken", [b"x"], "web-1")
    assert (
        header(dead, 0, "agent.error") == "step 1 (parse json): not JSON: JSON is malformed: invalid character (byte 0)"
    )
    assert (result.failed, result.dead) == (1, 1)


def test_what_a_step_says_of_failures_comes_before_dead_letters() -> None:
    head = 'topic = "t"\ndead_letters = "broken"'
    assert parcel(steps('parse = "json"\non_error = "keep"', head=head), "x").topic == "t"
    assert apply(steps('parse = "json"\non_error = "drop"', head=head), "x").parcels == []


def test_events_of_a_topic_keep_their_order_around_failed_ones() -> None:
    lines = [json.dumps({"n": n}) if n % 3 else f"bad {n}" for n in range(10)]
    values = parcel(steps('parse = "json"', "add = { x = 1 }"), *lines).values
    assert values == [f'{{"n":{n},"x":1}}'.encode() if n % 3 else f"bad {n}".encode() for n in range(10)]


def test_a_combined_line_is_understood_with_numbers_as_numbers() -> None:
    assert fields(steps('parse = "access_log"'), COMBINED) == [UNDERSTOOD]


@pytest.mark.parametrize(
    ("form", "line", "changed"),
    [
        ("auto", COMBINED.replace(" ann ", " - "), {"user": None}),
        ("auto", COMBINED.replace("200 512", "304 -"), {"status": 304, "bytes": 0}),
        ("auto", COMBINED.replace("GET /cart?id=7 HTTP/1.1", "-"), {"method": None, "path": None, "protocol": None}),
        (
            "auto",
            COMBINED.replace("GET /cart?id=7 HTTP/1.1", r"\x16\x03\"odd"),
            {"method": None, "path": r"\x16\x03\"odd", "protocol": None},
        ),
        ("auto", COMBINED.replace("curl/8.5", r"say \"hi\""), {"agent": r"say \"hi\""}),
        ("nginx", COMBINED + ' "198.51.100.1"', {"forwarded": "198.51.100.1"}),
        ("combined", COMBINED.replace('"https://example.org/"', '"-"'), {"referrer": None}),
        ("auto", COMBINED.replace("16/Nov", "99/Nov"), {"time": "99/Nov/2026:09:00:00 +0100"}),
        ("auto", COMBINED.replace(" ann ", " ann lee "), {"user": "ann lee"}),
    ],
)
def test_what_servers_write_in_special_cases(form: str, line: str, changed: dict[str, Any]) -> None:
    assert fields(steps(f'parse = "access_log"\nformat = "{form}"'), line) == [UNDERSTOOD | changed]


def test_the_common_format_has_no_referrer() -> None:
    line = COMBINED[: COMBINED.index(' "https')]
    without = {name: value for name, value in UNDERSTOOD.items() if name not in ("referrer", "agent")}
    assert fields(steps('parse = "access_log"\nformat = "common"'), line) == [without]


@few
@given(st.lists(st.one_of(st.just(COMBINED), st.text(), st.just('1.2.3.4 - - [x] "')), max_size=8))
def test_access_log_lines_keep_their_places_whatever_is_between_them(lines: list[str]) -> None:
    parsed = access_log_parser()(lines)
    assert [place for place, line in enumerate(lines) if line != COMBINED] == sorted(parsed.why)
    assert [found for found in parsed.fields if found] == [UNDERSTOOD] * lines.count(COMBINED)


def test_an_event_of_several_lines_does_not_disturb_its_neighbours() -> None:
    assert [*access_log_parser()([COMBINED, "a\nb", COMBINED]).why] == [1]


def quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@few
@given(st.dictionaries(st.text("abcäπ_.-09", min_size=1), st.text(), min_size=1))
def test_logfmt_reads_what_was_written(pairs: dict[str, str]) -> None:
    assert parse_logfmt(" ".join(f"{name}={quoted(value)}" for name, value in pairs.items())) == pairs


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("level=info cached took=12ms", {"level": "info", "cached": True, "took": "12ms"}),
        ('a= b="" c="x y" d=x"y', {"a": "", "b": "", "c": "x y", "d": 'x"y'}),
        (r'a="\u00e4\t\q"', {"a": "ä\tq"}),
        ("url=http://h/?a=b&c=d", {"url": "http://h/?a=b&c=d"}),
        ("a=1 a=2", {"a": "2"}),
    ],
)
def test_logfmt_by_example(line: str, expected: dict[str, Any]) -> None:
    assert parse_logfmt(line) == expected


@pytest.mark.parametrize("line", ["", "plain words", 'a="open', "=x", 'a="b"c d=1'])
def test_what_is_not_logfmt_is_told_in_words(line: str) -> None:
    assert isinstance(parse_logfmt(line), str)


@given(st.text(max_size=200))
def test_logfmt_never_raises(line: str) -> None:
    parse_logfmt(line)


CELLS = st.lists(
    st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"])), min_size=2, max_size=5
)


@few
@given(CELLS, st.sampled_from(",;|\t"), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_csv_reads_what_the_csv_module_wrote(cells: list[str], delimiter: str, quoting: int) -> None:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, quoting=quoting, lineterminator="").writerow(cells)  # type: ignore[arg-type]  # its stubs want a Literal
    names = [f"c{index}" for index in range(len(cells))]
    assert csv_parser(names, delimiter)(written.getvalue()) == dict(zip(names, cells, strict=True))


@pytest.mark.parametrize("row", ["a", "a,b,c", '"a,b', '"a"x,b', 'a,"b""'])
def test_a_row_with_other_columns_or_open_quotes_is_told_in_words(row: str) -> None:
    assert isinstance(csv_parser(["x", "y"])(row), str)


def test_csv_has_columns_types_and_its_header_left_out() -> None:
    options = 'parse = "csv"\ncolumns = ["id", "name", "price"]\ntypes = { id = "int", price = "float" }\n'
    text = steps(options + "skip_header = true\ndelimiter = ';'\nquote = \"'\"")
    result = apply(text, "id;name;price", "1;'a;b';1.5", "2;c;", "x;d;1")
    (only,) = result.parcels
    assert [value.decode() for value in only.values] == [
        '{"id":1,"name":"a;b","price":1.5}',
        '{"id":2,"name":"c","price":null}',
        "x;d;1",
    ]
    assert header(only, 2, "agent.error") == "step 1 (parse csv): id = 'x' is not a whole number"
    assert result.reasons == {"step 1 (parse csv)": 1}


def test_named_groups_become_fields_and_those_that_took_no_part_do_not() -> None:
    text = steps("parse = \"regex\"\npattern = '^(?P<level>[A-Z]+) (?:\\[(?P<thread>\\w+)\\] )?(?P<text>.*)$'")
    assert fields(text, "INFO [main] größer", "WARN x") == [
        {"level": "INFO", "thread": "main", "text": "größer"},
        {"level": "WARN", "text": "x"},
    ]
    assert apply(text, "nothing").failed == 1


def test_a_pattern_that_re2_refuses_is_taken_by_python() -> None:
    assert fields(steps("parse = \"regex\"\npattern = '(?P<a>\\w)(?=-)'"), "xy-z") == [{"a": "y"}]


def test_bytes_that_are_no_text_stay_visible() -> None:
    assert fields(steps('parse = "logfmt"'), b"a=caf\xe9") == [{"a": "caf\\xe9"}]
