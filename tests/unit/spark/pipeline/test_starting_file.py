"""The first file is valid as it stands, whatever the topic is called and holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.pipeline.reading import examine
from penstock.spark.pipeline.starting_file import NOT_LOOKED, Looked, kind_of, starting_file

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
