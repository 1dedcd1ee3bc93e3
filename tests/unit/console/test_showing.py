from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.console.answers import encode
from penstock.console.commands import command
from penstock.console.messages.arriving import records_of
from penstock.console.messages.showing import SHOWN_BYTES, payload, printable

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.binary(max_size=300), st.integers(1, 200))
def test_whatever_is_stored_can_be_told(data: bytes, most: int) -> None:
    told = payload(data, most)
    back: Any = msgspec.json.decode(encode(told))
    assert back == told
    assert told["size"] == len(data)
    if told["as"] == "hex":
        assert bytes.fromhex(told["text"]) == data[:most]
    elif not told["cut"]:
        assert told["text"].encode() == data
    else:
        assert data.startswith(told["text"].encode())
        assert len(told["text"].encode()) > most - 4


@given(ANY)
def test_json_is_told_as_the_text_that_it_was(value: Any) -> None:
    text = json.dumps(value)
    told = payload(text.encode())
    assert (told["as"], told["text"]) == ("json", text) or len(text) > SHOWN_BYTES


@given(ANY)
def test_a_value_that_is_sent_as_json_is_stored_as_it_was_written(value: Any) -> None:
    written = json.dumps(value, indent=1)
    (record,) = records_of(b'{"value": ' + written.encode() + b"}", lines=False)
    if value is None:
        assert record.value is None
    elif isinstance(value, str):
        assert record.value == value.encode()
    elif not (isinstance(value, dict) and value.keys() <= {"type", "data"}):
        assert record.value == written.encode()


@given(st.text())
def test_names_with_halves_of_characters_can_be_told(name: str) -> None:
    encode(printable(name))


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_name_in_a_command_is_one_word_and_no_option(name: str, other: str) -> None:
    words = shlex.split(command("topic", "delete", names=[name, other], options=["--yes"]))
    assert words[-2:] == [name, other]
    assert words[:4] == ["penstock", "topic", "delete", "--yes"]
    assert ("--" in words[4:-2]) == (name.startswith("-") or other.startswith("-"))
