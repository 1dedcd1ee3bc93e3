"""What a declaration makes: defaults, shared structs, text, ranges."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_security import UserScramCredentialRecord
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from penstock.protocol.messages.describe_delegation_token import DescribeDelegationTokenResponse
from penstock.protocol.messages.envelope import EnvelopeRequest
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.produce import ProduceResponse
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.protocol.versions import NO_VERSIONS, Versions
from penstock.protocol.wire import (
    Malformed,
    Spans,
    Unencodable,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    message,
    nested,
    schema_of,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)


@message(key=999, kind="request", versions="0-3", flexible="2+")
class Sample:
    name: str = string()
    small: int = int8(default=-1)
    port: int = uint16()
    big: int = uint32()
    share: float = float64(default=0.5)
    topic_id: Uuid = uuid()
    flags: list[bool] = array(boolean)
    secret: str | None = string(since=1, nullable="2+", default="s")
    hint: str = string(since=1, ignorable=True)
    place: Place = nested("Place", since=2, tag=0)
    other: Place | None = nested("Place", since=3, nullable=True, default=None)
    places: list[Place] = array("Place", since=2)

    @struct(versions="2+")
    class Place:
        row: int = int16(default=7)
        seats: list[int] = array(int32)


def test_every_field_has_a_default() -> None:
    sample = Sample()
    assert (sample.name, sample.small, sample.port, sample.share, sample.topic_id) == ("", -1, 0, 0.5, ZERO_UUID)
    assert (sample.flags, sample.secret, sample.place, sample.other) == ([], "s", Sample.Place(row=7), None)


def test_arrays_are_not_shared_between_messages() -> None:
    first, second = Sample(), Sample()
    first.flags.append(True)
    assert second.flags == []


def test_a_default_struct_refuses_to_be_changed_in_place() -> None:
    with pytest.raises(AttributeError, match="assign a new Place instead of setting row"):
        Sample().place.row = 5


def test_an_array_of_a_default_struct_refuses_to_grow() -> None:
    with pytest.raises(AttributeError, match="assign a new struct"):
        Sample().place.seats.append(1)
    assert Sample().place.seats == []


def test_a_message_is_a_dataclass_to_everyone_who_asks() -> None:
    assert [field.name for field in dataclasses.fields(Sample.Place)] == ["row", "seats", "unknown_tags"]  # type: ignore[arg-type]
    assert dataclasses.replace(Sample(name="a"), port=4) == Sample(name="a", port=4)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="nonsense"):
        Sample(nonsense=1)  # type: ignore[call-arg]


def test_a_copy_of_a_default_struct_is_an_ordinary_struct() -> None:
    shared = Sample().place
    for made in (copy.copy(shared), copy.deepcopy(shared), dataclasses.replace(shared, seats=[])):
        made.row = 5
        assert made == Sample.Place(row=5)


def test_messages_with_default_structs_can_be_pickled() -> None:
    sent = ProduceResponse.PartitionProduceResponse(index=4)
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_the_text_of_a_message_says_only_what_differs_from_the_defaults() -> None:
    assert repr(Sample(name="n", place=Sample.Place(row=1))) == "Sample(name='n', place=Sample.Place(row=1))"


@pytest.mark.parametrize(
    "made",
    [
        SaslAuthenticateRequest(auth_bytes=b"swordfish"),
        SaslAuthenticateResponse(auth_bytes=b"swordfish"),
        AlterUserScramCredentialsRequest.ScramCredentialUpsertion(salted_password=b"swordfish"),
        CreateDelegationTokenResponse(hmac=b"swordfish"),
        RenewDelegationTokenRequest(hmac=b"swordfish"),
        ExpireDelegationTokenRequest(hmac=b"swordfish"),
        DescribeDelegationTokenResponse.DescribedDelegationToken(hmac=b"swordfish"),
        EnvelopeRequest(request_data=b"swordfish"),
        ConfigRecord(name="ssl.key.password", value="swordfish"),
        UserScramCredentialRecord(name="alice", stored_key=b"swordfish", server_key=b"swordfish"),
    ],
    ids=lambda made: type(made).__name__,
)
def test_cve_2026_33558_the_text_of_a_message_shows_no_secret(made: object) -> None:
    assert "swordfish" not in repr(made)
    assert "[hidden]" in repr(made)


def test_messages_are_equal_by_value_and_class() -> None:
    assert Sample(name="a") == Sample(name="a")
    assert Sample(name="a") != Sample(name="b")
    assert Sample() != HeartbeatRequest()


def test_messages_have_slots() -> None:
    with pytest.raises(AttributeError):
        Sample().nonsense = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_field_that_a_version_lacks_has_its_default_after_decoding(version: int) -> None:
    sample = Sample(name="n", port=9, big=4_000_000_000, flags=[True, False], topic_id=Uuid(bytes(range(16))))
    assert decode(Sample, version, encode(sample, version)) == (sample, len(encode(sample, version)))


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ({"secret": "x"}, 0),
        ({"place": Sample.Place(row=1)}, 1),
        ({"other": Sample.Place()}, 2),
        ({"places": [Sample.Place()]}, 1),
        ({"secret": None}, 1),
        ({"name": None}, 3),
        ({"places": None}, 3),
        ({"place": None}, 3),
        ({"places": [None]}, 3),
        ({"flags": [None]}, 3),
        ({"small": 128}, 3),
        ({"small": None}, 3),
        ({"port": -1}, 3),
        ({"topic_id": b"short"}, 3),
        ({"topic_id": None}, 3),
        ({"name": "\ud800"}, 3),
        ({"name": "x" * 40_000}, 3),
        ({"name": "x" * 40_000}, 1),
        ({"name": 5}, 3),
        ({"share": "x"}, 3),
    ],
)
def test_what_a_version_cannot_say_is_refused(said: dict[str, Any], version: int) -> None:
    with pytest.raises(Unencodable):
        encode(Sample(**said), version)


def test_an_ignorable_field_is_left_out_where_a_version_lacks_it() -> None:
    assert encode(Sample(hint="later"), 0) == encode(Sample(), 0)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Unencodable, match="Sample has versions 0-3, not 4"):
        encode(Sample(), 4)
    with pytest.raises(Malformed, match="Sample has versions 0-3, not 4"):
        decode(Sample, 4, b"")


def test_a_tagged_field_is_left_out_when_it_equals_its_default() -> None:
    assert encode(Sample(place=Sample.Place(row=7)), 2) == encode(Sample(), 2)
    assert encode(Sample(place=Sample.Place(row=8)), 2) != encode(Sample(), 2)


@pytest.mark.parametrize(
    ("text", "versions"),
    [("0-4", Versions(0, 4)), ("3", Versions(3, 3)), ("2+", Versions(2, 32767)), ("none", NO_VERSIONS)],
)
def test_ranges_are_read_and_written_as_kafka_writes_them(text: str, versions: Versions) -> None:
    assert Versions.parse(text) == versions
    assert str(versions) == text


def test_a_struct_knows_the_versions_of_its_message() -> None:
    assert schema_of(Sample.Place).versions == Versions(2, 3)
    assert encode(FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2), 12) == b"\0\0\0\1\0\0\0\2\0"


def test_the_size_of_spans_is_the_sum_of_their_parts() -> None:
    assert Spans([b"abc", memoryview(b"de"), Spans([b"f"])]).size == 6
