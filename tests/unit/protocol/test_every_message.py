"""Every message in every version: what is written is read again, and foreign codecs agree with the bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from penstock.protocol.codec import decode, encode, encode_parts
from penstock.protocol.schema import schema_of
from penstock.protocol.source import Shape
from tests.unit.protocol.declared import MESSAGES, versions_of
from tests.unit.protocol.judges import JUDGES, difference
from tests.unit.protocol.strategies import messages, quick

# Where a judge does something else than the protocol says: what it can judge in place of the message.
EXCEPTIONS: dict[tuple[str, str], Callable[[Any], Any]] = {
    # kafka-python reads the reply as version 0 whenever it carries an error, not only for UNSUPPORTED_VERSION.
    ("kafka-python", "ApiVersionsResponse"): lambda message: replace(message, error_code=0),
}

EVERY = [
    pytest.param(cls, version, id=f"{name}-v{version}")
    for name, cls in MESSAGES.items()
    for version in versions_of(cls)
]


def same(message: Any) -> Any:
    return message


@pytest.mark.hypothesis
@pytest.mark.parametrize(("cls", "version"), EVERY)
def test_a_message_survives_the_wire_and_judges_agree(cls: type[Any], version: int) -> None:
    shape = Shape.of(schema_of(cls), version)
    judges = {name: judge for name, find in JUDGES.items() if (judge := find(cls, version))}

    @quick
    @given(messages(cls, version, tame=bool(judges)))
    def check(message: Any) -> None:
        data = encode(message, version)
        assert decode(cls, version, data) == (message, len(data))
        assert decode(cls, version, memoryview(b"frame" + data), 5) == (message, len(data) + 5)
        assert b"".join(encode_parts(message, version)) == data
        for name, reread in judges.items():
            judged = EXCEPTIONS.get((name, cls.__name__), same)(message)
            judged_data = encode(judged, version)
            understood, again = reread(judged_data)
            assert difference(shape, judged, understood) is None, name
            assert again == judged_data, name

    check()


def judged(judge: str) -> int:
    return sum(JUDGES[judge](cls, version) is not None for cls in MESSAGES.values() for version in versions_of(cls))


def test_the_judges_know_what_we_think_they_know() -> None:
    """A judge that silently knew nothing would agree with everything."""
    assert sum(len(versions_of(cls)) for cls in MESSAGES.values()) == 739
    assert judged("kio") >= 625
    assert judged("kafka-python") >= 486
