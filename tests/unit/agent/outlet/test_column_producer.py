"""Records with the same headers go as columns, and nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.outlet.column_producer import ROWS_MIN, ColumnProducer, column_rows
from penstock.client.producer import BulkDelivery, Producer
from penstock.client.producer.bulk import ColumnRows, ListRows
from penstock.kernels import RecordsBuilder

HEADERS = [("host", b"web-1"), ("path", b"/var/log/access.log")]
NOW_MS = 1_700_000_000_000

texts = st.text(max_size=8)
headers_of_a_file = st.lists(st.tuples(texts, st.binary(max_size=12)), min_size=1, max_size=4)


def payload(rows: Any) -> bytes:
    builder = RecordsBuilder(1 << 24)
    assert rows.take(builder, 0, rows.count, None) == rows.count
    return bytes(builder.payload())


@given(
    rows=st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=5), st.integers(0, 1 << 42)), min_size=1),
    headers=headers_of_a_file,
    keyed=st.booleans(),
    stamped=st.booleans(),
)
def test_columns_and_lists_are_the_same_bytes(
    rows: list[tuple[bytes, bytes, int]], headers: list[tuple[str, bytes]], keyed: bool, stamped: bool
) -> None:
    values = [value for value, _, _ in rows]
    keys = [key for _, key, _ in rows] if keyed else None
    stamps = [at for _, _, at in rows] if stamped else None
    columns = column_rows(values, keys, headers, stamps, NOW_MS)
    assert columns is not None
    assert payload(columns) == payload(ListRows(values, keys, [headers] * len(values), stamps, NOW_MS))


@pytest.mark.parametrize("count", [1, 1_023, 1_024, 1_025, 16_384, 16_385])
def test_offsets_that_were_counted_for_more_rows_serve_fewer(count: int) -> None:
    values = [b"%d" % number for number in range(count)]
    columns = column_rows(values, None, HEADERS, None, NOW_MS)
    assert columns is not None
    assert payload(columns) == payload(ListRows(values, None, [HEADERS] * count, None, NOW_MS))


@pytest.mark.parametrize(
    ("values", "keys", "headers", "stamps"),
    [
        ([b"a", None], None, HEADERS, None),
        ([b"a", "text"], None, HEADERS, None),
        ([b"a", memoryview(b"abcd").cast("i")], None, HEADERS, None),
        ([b"a", b"b"], [b"k", None], HEADERS, None),
        ([b"a", b"b"], [b"k"], HEADERS, None),
        ([b"a", b"b"], None, [("name", None)], None),
        ([b"a", b"b"], None, [(b"name", b"v")], None),
        ([b"a", b"b"], None, [("name", b"v", b"w")], None),
        ([b"a", b"b"], None, HEADERS, [1, 1 << 70]),
        ([b"a", b"b"], None, HEADERS, [1]),
    ],
)
def test_what_is_not_plain_bytes_is_left_to_the_usual_way(values: Any, keys: Any, headers: Any, stamps: Any) -> None:
    assert column_rows(values, keys, headers, stamps, NOW_MS) is None


class Seen(Exception):
    """What `_send_rows` was given."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows


class Watched(ColumnProducer):
    def _start(self) -> None:
        """Without a loop."""

    def _send_rows(self, topic: str, rows: Any, partition: int | None) -> BulkDelivery:
        raise Seen(rows)


@pytest.mark.parametrize(
    ("count", "headers", "kind"),
    [
        (ROWS_MIN, [HEADERS] * ROWS_MIN, ColumnRows),
        (ROWS_MIN - 1, [HEADERS] * (ROWS_MIN - 1), ListRows),
        (ROWS_MIN, [*([HEADERS] * (ROWS_MIN - 1)), [("agent.mark", b"truncated")]], ListRows),
        (ROWS_MIN, [HEADERS, [("agent.mark", b"truncated")], *([HEADERS] * (ROWS_MIN - 2))], ListRows),
        (ROWS_MIN, [()] * ROWS_MIN, ListRows),
        (ROWS_MIN, None, ListRows),
    ],
)
def test_only_the_same_headers_throughout_go_as_columns(count: int, headers: Any, kind: type) -> None:
    with pytest.raises(Seen) as seen:
        Watched("localhost:1").send_batch("topic", [b"value"] * count, headers=headers)
    assert type(seen.value.rows) is kind


def test_headers_that_are_too_few_are_refused_as_ever() -> None:
    with pytest.raises(ValueError, match="32 values and 31 headers"):
        Watched("localhost:1").send_batch("topic", [b"value"] * 32, headers=[HEADERS] * 31)


def test_it_is_a_producer() -> None:
    assert issubclass(ColumnProducer, Producer)
