"""The first file is valid as it stands, whatever the topic is called and holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.pipeline.reading import examine
from penstock.spark.pipeline.starting_file import NOT_LOOKED, Looked, kind_of, looked_at_json, starting_file
from penstock.spark.values.infer import infer_schema
from penstock.spark.values.options import ValueOptions

RAW = Looked(None, None, ("key", "value"), ("timestamp",), "")
TEXT = Looked("text", None, ("value",), (), "")
ODD = Looked("json", "`a b` STRING, c TIMESTAMP", ("a b", "c"), ("c",), "")


@pytest.mark.parametrize("looked", [NOT_LOOKED, RAW, TEXT, ODD])
@pytest.mark.parametrize("topic", ["orders", "2.orders-x"])
def test_it_is_valid(looked: Looked, topic: str) -> None:
    found = examine(starting_file(name="p", topic=topic, bootstrap="b:1", looked=looked), Path("/x/p.toml"))
    assert (found.mistakes, found.warnings) == ((), ())


@pytest.mark.parametrize("looked", [NOT_LOOKED, RAW, TEXT, ODD])
def test_what_is_commented_out_is_valid_too(looked: Looked) -> None:
    text = starting_file(name="p", topic="orders", bootstrap="b:1", looked=looked)
    head, _, rest = text.partition("name = ")
    lines = [line.removeprefix("# ") for line in rest.splitlines()]
    found = examine("name = " + "\n".join(lines), Path("/x/p.toml"))
    assert [each.words for each in found.mistakes] == [
        "there is no module 'my_steps': neither /x/my_steps.py nor one that is installed"
    ]
    assert head.startswith("# ")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([b'{"a": 1}', b"{}"], "json"),
        ([b'{"a": 1}'] * 19 + [b"broken"], "json"),
        ([b"[1]", b"2"], "text"),
        ([b"hello", "größe".encode()], "text"),
        ([b"\x00\x01", b"a"], None),
        ([b"\xff\xfe"], None),
        ([], None),
    ],
)
def test_a_sample_tells_what_a_topic_holds(values: list[bytes], kind: str | None) -> None:
    assert kind_of(values) == kind


def test_the_report_says_what_the_file_says_and_no_table_is_split_by_a_time() -> None:
    sample = [b'{"id": %d, "country": "nl", "at": "2026-11-01T10:00:00Z"}' % number for number in range(9)]
    chosen = ValueOptions.of({"value.format": "json", "value.schema": "infer"})
    assert chosen is not None
    looked = looked_at_json(*infer_schema(chosen, sample))
    assert looked.schema == "id BIGINT, country STRING, at TIMESTAMP"
    lines = looked.report.splitlines()
    assert lines[-1] == f"value.schema = {looked.schema}"
    (at,) = [line.split() for line in lines if line.split()[0] == "at"]
    assert (at[1], at[-2:]) == ("TIMESTAMP", ["from", "text"])
    text = starting_file(name="p", topic="orders", bootstrap="b:1", looked=looked)
    assert '# partition_by = ["country"]' in text
    assert "partition_by" not in starting_file(name="p", topic="orders", bootstrap="b:1", looked=RAW)
