"""What a Postgres writes is read as it was meant, and nothing else is taken for a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.postgres.log.lsn import lsn_of, lsn_text
from penstock.agent.inputs.postgres.log.wire import (
    UNCHANGED,
    BrokenMessage,
    Delete,
    Insert,
    Message,
    OriginName,
    Relation,
    RelationColumn,
    TransactionBegin,
    TransactionCommit,
    Truncate,
    TypeName,
    Update,
    read,
)
from tests.unit.agent.postgres.pgoutput import written

U32 = st.integers(0, 2**32 - 1)
LSN = st.integers(0, 2**64 - 1)
TIME_US = st.integers(0, 2**61)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NAME = TEXT.filter(bool)
ROW = st.lists(st.none() | st.just(UNCHANGED) | TEXT, max_size=5).map(tuple)
COLUMN = st.builds(RelationColumn, NAME, U32, st.integers(-1, 2**31 - 1), st.booleans())

MESSAGES = st.one_of(
    st.builds(TransactionBegin, LSN, TIME_US, U32),
    st.builds(TransactionCommit, LSN, LSN, TIME_US),
    st.builds(OriginName, LSN, TEXT),
    st.builds(TypeName, U32, NAME, NAME),
    st.builds(Relation, U32, NAME, NAME, st.sampled_from("dnfi"), st.lists(COLUMN, max_size=4).map(tuple)),
    st.builds(Insert, U32, ROW),
    st.builds(Update, U32, ROW),
    st.builds(Update, U32, ROW, ROW, st.booleans()),
    st.builds(Delete, U32, ROW, st.booleans()),
    st.builds(Truncate, st.lists(U32, max_size=3).map(tuple), st.booleans(), st.booleans()),
)


@given(MESSAGES)
def test_every_message_is_read_as_it_was_written(message: Message) -> None:
    assert read(written(message)) == message


@given(MESSAGES, st.data())
def test_a_message_that_is_cut_is_broken_and_never_another(message: Message, data: st.DataObject) -> None:
    whole = written(message)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(BrokenMessage):
        read(cut)


@given(MESSAGES, st.binary(min_size=1, max_size=4))
def test_a_message_that_is_too_long_is_broken(message: Message, more: bytes) -> None:
    with pytest.raises(BrokenMessage):
        read(written(message) + more)


@given(st.binary(max_size=60))
def test_whatever_bytes_come_nothing_else_is_raised(data: bytes) -> None:
    try:
        again = written(read(data))
    except BrokenMessage:
        return
    assert read(again) == read(data)


def test_a_binary_value_was_not_asked_for() -> None:
    with pytest.raises(BrokenMessage, match="'b' was not asked for"):
        read(written(Insert(7, ("x",))).replace(b"t\0\0\0\1x", b"b\0\0\0\1x"))


def test_a_transaction_in_parts_was_not_asked_for() -> None:
    with pytest.raises(BrokenMessage, match="kind b'S'"):
        read(b"S\0\0\0\7\1")


@given(LSN)
def test_a_place_in_the_log_is_written_as_postgres_writes_it(lsn: int) -> None:
    assert lsn_of(lsn_text(lsn)) == lsn


def test_the_halves_of_a_place_are_hexadecimal() -> None:
    assert lsn_of("16/B374D848") == 0x16_B374D848
    with pytest.raises(ValueError, match="16/B374D848"):
        lsn_of("16-B374D848")
