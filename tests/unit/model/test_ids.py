"""Ids that are drawn: from a given randomness, of version 4, and of a text that nobody mistakes for something else."""

from __future__ import annotations

from random import Random
from uuid import UUID

from penstock.model.ids import RESERVED_UUIDS, new_hyphenated_uuid, new_uuid, uuid_parse, uuid_text


class _Given:
    """Draws what it is given, then noise."""

    def __init__(self, *first: bytes) -> None:
        self._first, self._noise = list(first), Random(7)

    def randbytes(self, n: int, /) -> bytes:
        return self._first.pop(0) if self._first else self._noise.randbytes(n)

    def getrandbits(self, k: int, /) -> int:
        return self._noise.getrandbits(k)


def test_ids_look_like_kafkas() -> None:
    random = Random(3)
    for _ in range(200):
        text = uuid_text(new_uuid(random))
        assert len(text) == 22
        assert not text.startswith("-")
        assert UUID(bytes=uuid_parse(text)).version == 4


def test_one_randomness_gives_one_row_of_ids() -> None:
    assert [new_uuid(Random(5)) for _ in range(3)] == [new_uuid(Random(5))] * 3
    assert new_uuid(Random(5)) != new_uuid(Random(6))


def test_an_id_whose_text_is_an_option_is_drawn_again() -> None:
    like_an_option = b"\xf8" + bytes(15)
    assert uuid_text(like_an_option).startswith("-")
    drawn = new_uuid(_Given(like_an_option))
    assert drawn[0] != 0xF8
    assert int.from_bytes(drawn, "big") >= RESERVED_UUIDS


def test_an_id_with_hyphens_is_one_of_version_4() -> None:
    random = Random(3)
    drawn = [new_hyphenated_uuid(random) for _ in range(200)]
    assert len(set(drawn)) == 200
    for text in drawn:
        assert str(UUID(text)) == text
        assert UUID(text).version == 4
