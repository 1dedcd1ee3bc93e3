"""The grammar of `-f`: what is printed, what is read, and that one reads what one printed."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operations.records.layout import BadFormat, parse_layout
from penstock.operations.records.reading import BadInput, InputRecord, compile_reader, overlay
from penstock.operations.records.writing import compile_writer
from tests.unit.operations.records.samples import Chunks, Sample, records

RECORD = Sample(
    topic="orders",
    partition=3,
    offset=41,
    timestamp=1_644_796_800_123,
    timestamp_type=1,
    leader_epoch=2,
    key=b"k1",
    value=b"\x00\x00\x01\x02rest",
    headers=(("a", b"1"), ("b", None)),
)


def printed(layout: str, record: Sample = RECORD, count: int = 1) -> bytes:
    return compile_writer(parse_layout(layout))(record, count)


def read(layout: str, data: bytes, chunk: int = 7) -> list[InputRecord]:
    return list(compile_reader(parse_layout(layout))(Chunks(data, chunk)))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (r"%t-%p@%o %k\n", b"orders-3@41 k1\n"),
        ("%e %d %i", b"2 1644796800123 1"),
        ("%T %K %V %H", b"6 2 8 2"),
        ("%K{big32}%k", b"\x00\x00\x00\x02k1"),
        ("%K{little16}%K{big8}%K{byte}%K{hex8}%K{hex4}%K{hex}%K{bool}", b"\x02\x00\x02\x020222true"),
        ("%o{hex64} %o{hex32} %o{hex16} %o{number}", b"0000000000000029 00000029 0029 41"),
        ("%o{big64}%o{little64}", (41).to_bytes(8, "big") + (41).to_bytes(8, "little")),
        ("%k{hex} %k{base64} %k{base64raw}", b"6b31 azE= azE"),
        ("%v{unpack[>IsX]}", None),
        ("%v{unpack[>Is$]}", b"258rest"),
        ("%v{unpack{<hxH$}}", b"0 513(4 bytes left)"),
        ("%k{unpack##.cq##}", b"k1(too short for q)"),
        ("%h{%k=%v;}", b"a=1;b=;"),
        ("%h{%K%k{hex}%V{big16}%v%%%{%}}", b"161\x00\x011%{}162\x00\x00%{}"),
        ("%d{go##2006-01-02T15:04:05.000Z07:00##}", b"2022-02-14T00:00:00.123Z"),
        ("%d{go[Mon Jan _2 3:04PM 06]}", b"Mon Feb 14 12:00AM 22"),
        ("%d{strftime[%F %T]}", b"2022-02-14 00:00:00"),
        ("%d{strftime##[%F]##}", b"[2022-02-14]"),
        ("%a{timestamp-type} %a{timestamp-type;bool}", b"1 true"),
        (r"\x41\t\r\\%%%{%}", b"A\t\r\\%{}"),
        ("µ", "µ".encode()),
    ],
)
def test_formats_print(layout: str, expected: bytes | None) -> None:
    if expected is None:
        with pytest.raises(BadFormat, match="no letter of unpack"):
            printed(layout)
    else:
        assert printed(layout) == expected


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (-1, "1969-12-31"),
        (-30_610_224_000_000, "1000-01-01"),
        (253_402_300_799_999, "9999-12-31"),
        (-62_135_596_800_001, "-62135596800001"),
        (253_402_300_800_000, "253402300800000"),
        ((1 << 63) - 1, "9223372036854775807"),
        (-(1 << 63), "-9223372036854775808"),
    ],
)
def test_a_time_outside_of_the_calendar_is_printed_as_its_milliseconds(timestamp: int, expected: str) -> None:
    record = replace(RECORD, timestamp=timestamp)
    assert printed("%d{strftime[%Y-%m-%d]}|%d{go[2006-01-02]}", record) == f"{expected}|{expected}".encode()


@pytest.mark.parametrize(
    ("layout", "hint"),
    [
        ("%q", "%q at 0 means nothing"),
        ("%", "means nothing"),
        ("%h{%t}", "in a header, %t"),
        ("%h{%k", "never closed"),
        ("%v{hex", "never closed"),
        ("%v{unpack[i}", "never closed"),
        ("%v{unpack}", "needs an argument"),
        ("%v{hex[a]}", "takes no argument"),
        ("%v{big32}", "no modifier of %v"),
        ("%o{base64}", "no modifier of %o"),
        ("%a{compression}", "no modifier of %a"),
        ("%a", "needs braces"),
        ("%h", "needs braces"),
        (r"\q", "no escape"),
        (r"\x1", "no escape"),
        ("%x", "is not known to a reader of records"),
        ("%]", "high watermark"),
        ("%V{3}", "for reading"),
        ("%v{re[a]}", "for reading only"),
    ],
)
def test_formats_that_cannot_be_printed_are_explained(layout: str, hint: str) -> None:
    with pytest.raises(BadFormat) as refused:
        printed(layout)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("layout", "data", "expected"),
    [
        (r"%v\n", b"a\n\nb", [InputRecord(value=b"a"), InputRecord(value=b""), InputRecord(value=b"b")]),
        (r"%k %v\n", b"k v w\n", [InputRecord(key=b"k", value=b"v w")]),
        ("%v", b"all\nof it", [InputRecord(value=b"all\nof it")]),
        (r"%v\r\n", b"a\r\nb\r\n", [InputRecord(value=b"a"), InputRecord(value=b"b")]),
        (r"%t:%p:%d:%v\n", b"t:4:99:x\n", [InputRecord(topic="t", partition=4, timestamp=99, value=b"x")]),
        (r"%o,%e,%v\n", b"7,1,x\n", [InputRecord(value=b"x")]),
        (r"%k{hex} %v{base64}\n", b"6b31 azE=\n", [InputRecord(key=b"k1", value=b"k1")]),
        (r"%v{base64raw}\n", b"azE\n", [InputRecord(value=b"k1")]),
        (r"%v{json} %k\n", b'{"a" : [1, 2]} k\n', [InputRecord(key=b"k", value=b'{"a":[1,2]}')]),
        (r"%k{re[\d+]}%v{re#[a-z]+#}\n", b"12ab\n3c\n", [InputRecord(key=b"12", value=b"ab"),
                                                      InputRecord(key=b"3", value=b"c")]),
        ("%V{3}%v", b"abcdef", [InputRecord(value=b"abc"), InputRecord(value=b"def")]),
        ("%K{big16}%k%V{hex8}%v", b"\x00\x01k03abc", [InputRecord(key=b"k", value=b"abc")]),
        ("%V %v%K{bool}%k", b"2 abtruek", [InputRecord(key=b"k", value=b"ab")]),
        (r"%H %h{%k=%v;}%v\n", b"2 a=1;b=;x\n", [InputRecord(headers=[("a", b"1"), ("b", b"")], value=b"x")]),
        (r"%v%%\n", b"5%\n", [InputRecord(value=b"5")]),
        (r"%v\n", b"", []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_formats_read(layout: str, data: bytes, expected: list[InputRecord], chunk: int) -> None:
    assert read(layout, data, chunk) == expected


@pytest.mark.parametrize(
    ("layout", "hint"),
    [
        ("%k%v", "nothing says where %k ends"),
        ("%h{%k%v}", "their number has to come first"),
        ("%k %K", "stands twice, or behind"),
        ("%K%K", "stands twice, or behind"),
        ("%d{strftime[%F]}", "can be printed but not read"),
        ("%i", "can be printed but not read"),
        ("%v{unpack[i]}", "for printing only"),
        ("%v{re[(]}", "no regular expression"),
        ("plain", "no field to read into"),
    ],
)
def test_formats_that_cannot_be_read_are_explained(layout: str, hint: str) -> None:
    with pytest.raises(BadFormat) as refused:
        compile_reader(parse_layout(layout))
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("layout", "data", "hint"),
    [
        (r"%k %v\n", b"a b\nab", "record 2: b' ' was expected"),
        ("%V{big32}%v", b"\x00\x00\x00\x09abc", "9 bytes were expected, the input ends after 3"),
        ("%V %v", b"-3 abc", "-3 is no length"),
        ("%V %v", b"x", "was expected"),
        (r"%v{hex}\n", b"zz\n", "record 1: non-hexadecimal"),
        (r"%v{json}\n", b"{\n", "JSON was expected"),
        (r"%v{json}\n", b"1 2\n", r"b'\n' was expected, not b' '"),
        (r"%v{base64}\n", b"a\n", "record 1"),
        (r"%p %v\n", b"x y\n", "was expected, not"),
    ],
)
def test_input_that_does_not_follow_the_format_is_explained(layout: str, data: bytes, hint: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(layout, data)
    assert hint in str(refused.value)


BINARY = "%T{byte}%t%p{big32}%d{big64}%K{big32}%k%V{little32}%v%H{big16}%h{%K{big16}%k%V{hex32}%v}"


@given(st.lists(records, max_size=4), st.integers(1, 50))
def test_what_a_sized_format_prints_it_reads_back(given_records: list[Sample], chunk: int) -> None:
    data = b"".join(printed(BINARY, record) for record in given_records)
    assert read(BINARY, data, chunk) == [
        InputRecord(
            topic=record.topic,
            partition=record.partition,
            timestamp=record.timestamp,
            key=record.key or b"",
            value=record.value or b"",
            headers=[(name, value or b"") for name, value in record.headers],
        )
        for record in given_records
    ]


@given(st.lists(records, max_size=4), st.sampled_from(["hex", "base64", "base64raw"]), st.integers(1, 9))
def test_coded_text_reads_back_between_delimiters(given_records: list[Sample], style: str, chunk: int) -> None:
    layout = rf"%k{{{style}}} %v{{{style}}}\n"
    data = b"".join(printed(layout, record) for record in given_records)
    assert [(r.key, r.value) for r in read(layout, data, chunk)] == [
        (r.key or b"", r.value or b"") for r in given_records
    ]


@given(st.text(alphabet="%tkvhdTKVHpoeiax{}[]#\\n9xbig32 ", max_size=14))
def test_no_format_does_worse_than_be_refused(layout: str) -> None:
    for compiled in (compile_writer, compile_reader):
        with contextlib.suppress(BadFormat):
            compiled(parse_layout(layout))


def test_the_command_line_overrules_the_input() -> None:
    assert overlay(InputRecord(key=b"a", value=b"v"), key=b"b", partition=None) == InputRecord(key=b"b", value=b"v")
