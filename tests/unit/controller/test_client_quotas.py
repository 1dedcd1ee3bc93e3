"""AlterClientQuotas."""

from __future__ import annotations

from penstock.controller.client_quotas import decide_alter
from penstock.model.errors import INVALID_REQUEST
from penstock.protocol.disk.metadata_configs import ClientQuotaRecord
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from tests.unit.controller.security_desk import SecurityDesk

Request = AlterClientQuotasRequest
Names = list[tuple[str, str | None]]

ALICE: Names = [("user", "alice")]
PAIR: Names = [("user", "alice"), ("client-id", None)]


def entry(names: Names, **limits: float | None) -> Request.EntryData:
    """Limits by key; None takes one away."""
    return Request.EntryData(
        entity=[Request.EntityData(entity_type=type, entity_name=name) for type, name in names],
        ops=[Request.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()],
    )


def alter(desk: SecurityDesk, *entries: Request.EntryData, validate_only: bool = False) -> list[int]:
    reply = desk.do(decide_alter(desk.world, Request(entries=list(entries), validate_only=validate_only)))
    return [each.error_code for each in reply.entries]


def test_limits_are_set_changed_and_taken_away() -> None:
    desk = SecurityDesk()
    assert alter(desk, entry(ALICE, producer_byte_rate=5, request_percentage=0.5), entry(PAIR[::-1])) == [0, 0]
    assert desk.image.quotas == {(("user", "alice"),): {"producer_byte_rate": 5, "request_percentage": 0.5}}
    assert alter(desk, entry(ALICE, producer_byte_rate=7, request_percentage=None)) == [0]
    assert desk.image.quotas == {(("user", "alice"),): {"producer_byte_rate": 7}}
    assert alter(desk, entry(ALICE, producer_byte_rate=None, consumer_byte_rate=None)) == [0]
    assert desk.image.quotas == {}


def test_the_order_of_an_entitys_parts_does_not_matter() -> None:
    desk = SecurityDesk()
    alter(desk, entry(PAIR, producer_byte_rate=5))
    alter(desk, entry(PAIR[::-1], producer_byte_rate=6))
    assert desk.image.quotas == {(("client-id", None), ("user", "alice")): {"producer_byte_rate": 6}}


def test_what_is_so_already_makes_no_record_and_validate_only_none_at_all() -> None:
    desk = SecurityDesk()
    alter(desk, entry(ALICE, producer_byte_rate=5))
    same = Request(entries=[entry(ALICE, producer_byte_rate=5, consumer_byte_rate=None)])
    assert decide_alter(desk.world, same).records == []
    assert alter(desk, entry(ALICE, producer_byte_rate=9), validate_only=True) == [0]
    assert alter(desk, entry(ALICE, producer_byte_rate=-1), validate_only=True) == [INVALID_REQUEST.code]
    assert desk.image.quotas == {(("user", "alice"),): {"producer_byte_rate": 5}}


def test_an_entity_is_changed_as_a_whole_or_not_at_all() -> None:
    desk = SecurityDesk()
    told = alter(desk, entry(ALICE, producer_byte_rate=5, nothing=1), entry([("user", None)], producer_byte_rate=5))
    assert told == [INVALID_REQUEST.code, 0]
    assert list(desk.image.quotas) == [(("user", None),)]


def test_an_entity_that_stands_twice_stays_as_it_is_and_is_answered_once() -> None:
    desk = SecurityDesk()
    assert alter(desk, entry(PAIR, producer_byte_rate=5), entry(PAIR[::-1], producer_byte_rate=6)) == [42]
    double = entry(ALICE, producer_byte_rate=5)
    double.ops.append(Request.OpData(key="producer_byte_rate", value=6.0))
    assert alter(desk, double) == [42]
    assert desk.image.quotas == {}


def test_an_invalid_entity_is_refused_and_told_back() -> None:
    desk = SecurityDesk()
    decision = decide_alter(desk.world, Request(entries=[entry([("ip", "10.0.0.1"), ("user", "a")])]))
    (told,) = decision.reply.entries
    assert told.error_code == INVALID_REQUEST.code
    assert [(part.entity_type, part.entity_name) for part in told.entity] == [("ip", "10.0.0.1"), ("user", "a")]


def test_the_record_of_an_address() -> None:
    desk = SecurityDesk()
    decision = decide_alter(desk.world, Request(entries=[entry([("ip", None)], connection_creation_rate=3)]))
    part = ClientQuotaRecord.EntityData(entity_type="ip", entity_name=None)
    assert decision.records == [(ClientQuotaRecord(entity=[part], key="connection_creation_rate", value=3.0), 0)]
