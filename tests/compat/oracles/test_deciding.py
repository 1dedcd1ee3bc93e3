"""What is decided on ACLs, limits, credentials and tokens, judged by the managers of Apache Kafka's controller.

Records and replies are compared as bytes, where nothing in them is random.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from penstock.controller import acls, client_quotas, scram, tokens
from penstock.controller.decision import Decision
from penstock.metadata.image import quota_entity
from penstock.metadata.records import frame_record, unframe_record
from penstock.model.ids import Uuid
from penstock.model.security import Principal
from penstock.protocol.codec import decode, encode_into
from penstock.protocol.disk.metadata_configs import ClientQuotaRecord
from penstock.protocol.disk.metadata_security import DelegationTokenRecord, UserScramCredentialRecord
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.protocol.messages.delete_acls import DeleteAclsRequest
from penstock.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from penstock.security.acls import acl_entry, record_of
from penstock.security.delegation import TokenIndex, TokenSettings, token_hmac
from tests.compat.oracles.jvm import answers
from tests.unit.controller.security_desk import SecurityDesk

pytestmark = [pytest.mark.compat, pytest.mark.timeout(1_200)]

CASES = 20_000
"""A case is a whole request of several changes."""


def case(kind: str, records: Iterable[Any], request: Any, version: int, **said: Any) -> dict[str, Any]:
    out = bytearray()
    if request is not None:
        encode_into(request, version, out)
    return {
        "kind": kind,
        "records": [frame_record(record, 0).hex() for record in records],
        "request": out.hex(),
        "version": version,
        "level": 30,
        **said,
    }


def written(decision: Decision) -> list[str]:
    return sorted(frame_record(*record).hex() for record in decision.records)


def anonymous(frames: Iterable[str]) -> list[str]:
    """ACL records without their ids, which are random."""
    records = [unframe_record(bytes.fromhex(frame)) for frame in frames]
    for record in records:
        record.id = Uuid(bytes(16))
    return sorted(frame_record(record, 0).hex() for record in records)


def acl_records(random: Random) -> list[Any]:
    drawn = {random_acl(random) for _ in range(random.choice([0, 1, 5, 20]))}
    return [record_of(Uuid((n + 1000).to_bytes(16, "big")), acl_entry(*acl)) for n, acl in enumerate(sorted(drawn))]


def random_acl(random: Random) -> tuple[Any, ...]:
    return (
        random.choice([2, 2, 3]),
        random.choice(["a", "ab", "abc", "*"]),
        random.choice([3, 4]),
        random.choice(["User:a", "User:b", "User:*"]),
        random.choice(["*", "10.0.0.1"]),
        random.choice([2, 3, 4]),
        random.choice([2, 3]),
    )


def test_acls_are_made_alike() -> None:
    random = Random(1)
    creation = CreateAclsRequest.AclCreation
    fields = [field.name for field in dataclasses.fields(creation)][:7]
    asked = []
    for _ in range(CASES):
        drawn = []
        for _ in range(random.choice([1, 2, 5])):
            acl = list(random_acl(random))
            if random.random() < 0.2:
                spoiled = random.choice([(0, 0), (2, 0), (5, 0), (6, 0), (3, "nobody"), (3, "")])
                acl[spoiled[0]] = spoiled[1]
            drawn.append(creation(**dict(zip(fields, acl, strict=True))))
        asked.append((acl_records(random), CreateAclsRequest(creations=drawn)))
    cases = [case("create acls", records, request, 3) for records, request in asked]
    for (records, request), kafka in zip(asked, answers("Deciding.java", cases), strict=True):
        desk = SecurityDesk()
        desk.put(*records)
        decision = acls.decide_create(desk.world, request, desk.acls)
        told = [{"error": each.error_code, "why": each.error_message} for each in decision.reply.results]
        assert told == kafka["reply"], request
        assert anonymous(written(decision)) == anonymous(kafka["records"]), request


def test_acls_are_removed_alike() -> None:
    random = Random(2)
    asked = []
    for _ in range(CASES):
        filters = [
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=random.choice([1, 2, 3]),
                resource_name_filter=random.choice([None, "a", "ab", "abc", "abcd", "*", ""]),
                pattern_type_filter=random.choice([1, 2, 3, 4]),
                principal_filter=random.choice([None, None, "User:a", "User:*"]),
                host_filter=random.choice([None, "*"]),
                operation=random.choice([1, 2, 3]),
                permission_type=random.choice([1, 2, 3]),
            )
            for _ in range(random.choice([1, 1, 2, 4]))
        ]
        asked.append((acl_records(random), DeleteAclsRequest(filters=filters)))
    cases = [case("delete acls", records, request, 3) for records, request in asked]
    for (records, request), kafka in zip(asked, answers("Deciding.java", cases), strict=True):
        desk = SecurityDesk()
        desk.put(*records)
        decision = acls.decide_delete(desk.world, request, desk.acls)
        told = [
            {"error": each.error_code, "why": each.error_message, "deleted": sorted(map(entry, each.matching_acls))}
            for each in decision.reply.filter_results
        ]
        for each in kafka["reply"]:
            each["deleted"].sort()
        assert told == kafka["reply"], request
        assert written(decision) == sorted(kafka["records"]), request


def entry(acl: Any) -> list[Any]:
    resource = [acl.resource_type, acl.resource_name, acl.pattern_type]
    return [*resource, acl.principal, acl.host, acl.operation, acl.permission_type]


KEYS = ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"]


def test_limits_are_altered_alike() -> None:
    random = Random(3)
    asked = []
    for _ in range(CASES):
        records = [
            ClientQuotaRecord(entity=parts(ClientQuotaRecord.EntityData, random_entity(random)), key=key, value=value)
            for key, value in [(random.choice(KEYS), random.choice([1.0, 5.0])) for _ in range(random.randrange(6))]
        ]
        entities = {quota_entity(each): each for each in (random_entity(random) for _ in range(random.choice([1, 3])))}
        asked.append((records, AlterClientQuotasRequest(entries=[random_entry(random, e) for e in entities.values()])))
    cases = [case("quotas", records, request, 1) for records, request in asked]
    for (records, request), kafka in zip(asked, answers("Deciding.java", cases), strict=True):
        desk = SecurityDesk()
        desk.put(*records)
        decision = client_quotas.decide_alter(desk.world, request)
        told = [[sorted_entity(each.entity), each.error_code, each.error_message] for each in decision.reply.entries]
        theirs = [[sorted(map(tuple, each["entity"])), each["error"], each["why"]] for each in kafka["reply"]]
        assert sorted(told, key=repr) == sorted(theirs, key=repr), request
        ours = sorted(map(unordered, written(decision)))
        assert ours == sorted(map(unordered, kafka["records"])), request


def random_entity(random: Random) -> list[tuple[str, str | None]]:
    names = [None, "a", "b"]
    kinds: list[list[tuple[str, str | None]]] = [
        [("user", random.choice(names))],
        [("client-id", random.choice(names))],
        [("client-id", random.choice(names)), ("user", random.choice(names))],
        [("ip", random.choice([None, "10.0.0.1"]))],
        random.choice(
            [[], [("host", "a")], [("user", "")], [("ip", None), ("user", "a")], [("ip", "no host.invalid ")]]
        ),
    ]
    return random.choice(kinds)


def random_entry(random: Random, entity: list[tuple[str, str | None]]) -> AlterClientQuotasRequest.EntryData:
    values = [1.0, 5.0, 2.5, 0.0, -1.0, 3e9, 1e19, 1.0000001]
    ops = [
        AlterClientQuotasRequest.OpData(key=key, value=random.choice(values), remove=random.random() < 0.3)
        for key in random.sample([*KEYS, "connection_creation_rate", "no_such_rate"], random.choice([1, 1, 2, 3]))
    ]
    # Which of several mistakes Kafka tells follows from the order of its hash tables: one at most.
    known = ["connection_creation_rate"] if dict(entity).keys() == {"ip"} else KEYS
    good = [op for op in ops if op.remove or (op.key in known and op.value in (1.0, 5.0))]
    bad = [op for op in ops if op not in good][:1]
    return AlterClientQuotasRequest.EntryData(entity=parts(AlterClientQuotasRequest.EntityData, entity), ops=good + bad)


def parts(data: type[Any], entity: list[tuple[str, str | None]]) -> list[Any]:
    return [data(entity_type=type, entity_name=name) for type, name in entity]


def sorted_entity(entity: Iterable[Any]) -> list[tuple[str, str | None]]:
    return sorted((part.entity_type, part.entity_name) for part in entity)


def unordered(frame: str) -> str:
    record = unframe_record(bytes.fromhex(frame))
    return repr((sorted_entity(record.entity), record.key, record.value, record.remove))


def test_credentials_are_altered_alike() -> None:
    random = Random(4)
    asked = []
    for _ in range(CASES):
        records = [
            UserScramCredentialRecord(name=name, mechanism=mechanism, salt=b"s", iterations=4096)
            for name in "abc"
            for mechanism in (1, 2)
            if random.random() < 0.5
        ]
        deletions = [
            AlterUserScramCredentialsRequest.ScramCredentialDeletion(
                name=random.choice(["a", "b", "c", ""]), mechanism=random.choice([1, 2, 0, 3])
            )
            for _ in range(random.choice([0, 1, 3]))
        ]
        upsertions = [
            AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=random.choice(["a", "b", "c", "d", ""]),
                mechanism=random.choice([1, 2, 1, 2, 0, 3]),
                iterations=random.choice([4_095, 4_096, 8_000, 16_384, 16_385]),
                salt=random.randbytes(random.choice([0, 16])),
                salted_password=random.randbytes(random.choice([1, 32, 64])),
            )
            for _ in range(random.choice([0, 1, 3]))
        ]
        request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
        asked.append((records, request, random.choice([30, 30, 30, 10])))
    cases = [case("scram", records, request, 0) | {"level": level} for records, request, level in asked]
    for (records, request, level), kafka in zip(asked, answers("Deciding.java", cases), strict=True):
        desk = SecurityDesk(level)
        desk.put(*records)
        decision = scram.decide_alter(desk.world, request)
        theirs, _ = decode(AlterUserScramCredentialsResponse, 0, bytes.fromhex(kafka["reply"]), 0)
        assert by_user(decision.reply) == by_user(theirs), request
        assert written(decision) == sorted(kafka["records"]), request


def by_user(reply: AlterUserScramCredentialsResponse) -> list[tuple[str, int, str | None]]:
    return sorted((each.user, each.error_code, each.error_message) for each in reply.results)


NOW_MS = 1_700_000_000_000
PRINCIPALS = [("User", "a"), ("User", "b"), ("User", "c")]


def token_records(random: Random) -> list[DelegationTokenRecord]:
    return [
        DelegationTokenRecord(
            owner=random.choice(["User:a", "User:b"]),
            requester="User:a",
            renewers=random.choice([[], ["User:b"], ["User:b", "User:c"]]),
            issue_timestamp=NOW_MS - 1_000,
            max_timestamp=NOW_MS + random.choice([-1, 0, 1, 10_000, 10**9]),
            expiration_timestamp=NOW_MS + random.choice([-1, 0, 1, 5_000]),
            token_id=f"token-{number}",
        )
        for number in range(random.choice([0, 1, 3]))
    ]


def token_case(random: Random) -> dict[str, Any]:
    secret = random.choice(["secret", "secret", "secret", None])
    records = token_records(random)
    hmac = token_hmac(b"secret", f"token-{random.randrange(3)}") if random.random() < 0.9 else b"x"
    period = random.choice([-1, 0, 1, 3_000, 10**12, 2**63 - 1])
    renewers = random.choice([[], [("User", "b")], [("User", "b"), ("User", "c")], [("Group", "b")]])
    create = CreateDelegationTokenRequest(
        owner_principal_type=random.choice([None, "User"]),
        owner_principal_name=None,
        renewers=[
            CreateDelegationTokenRequest.CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in renewers
        ],
        max_lifetime_ms=period,
    )
    if create.owner_principal_type is not None:
        create.owner_principal_name = random.choice(["", "b"])
    kind, request, version = random.choice(
        [
            ("create token", create, 3),
            ("renew token", RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period), 2),
            ("expire token", ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period), 2),
            ("sweep", None, 0),
        ]
    )
    settings = {
        "secret": secret,
        "lifetime": random.choice([10_000, 604_800_000]),
        "expiry": random.choice([2_000, 10**8]),
    }
    asking = {"now": NOW_MS, "principal": random.choice(PRINCIPALS)}
    made = case(kind, records, request, version, **settings, **asking)
    return made | {"level": random.choice([30, 30, 30, 13]), "of": (records, request)}


REPLIES = {
    "create token": CreateDelegationTokenResponse,
    "renew token": RenewDelegationTokenResponse,
    "expire token": ExpireDelegationTokenResponse,
}


def test_tokens_are_made_renewed_and_ended_alike() -> None:
    random = Random(5)
    cases = [token_case(random) for _ in range(CASES)]
    sent = [{name: value for name, value in each.items() if name != "of"} for each in cases]
    for asked, kafka in zip(cases, answers("Deciding.java", sent), strict=True):
        decision = decided_on_tokens(asked)
        if asked["kind"] == "sweep":
            assert written(decision) == sorted(kafka["records"]), asked
            continue
        theirs, _ = decode(REPLIES[asked["kind"]], asked["version"], bytes.fromhex(kafka["reply"]), 0)
        records = [unframe_record(bytes.fromhex(frame)) for frame in kafka["records"]]
        if asked["kind"] == "create token" and records:
            assert theirs.hmac == token_hmac(b"secret", theirs.token_id)
            ours = decision.records[0][0]
            records[0].token_id = theirs.token_id = ours.token_id
            theirs.hmac = decision.reply.hmac
        assert decision.reply == theirs, asked
        assert [record for record, _ in decision.records] == records, asked


def decided_on_tokens(asked: dict[str, Any]) -> Decision:
    records, request = asked["of"]
    desk = SecurityDesk(asked["level"])
    desk.put(*records)
    secret = None if asked["secret"] is None else asked["secret"].encode()
    settings = TokenSettings(secret, asked["lifetime"], asked["expiry"])
    index = None if secret is None else TokenIndex(secret)
    asker = tokens.TokenAsker(Principal(*asked["principal"]), NOW_MS, settings, index)
    match asked["kind"]:
        case "create token":
            return tokens.decide_create(desk.world, request, asker)
        case "renew token":
            return tokens.decide_renew(desk.world, request, asker)
        case "expire token":
            return tokens.decide_expire(desk.world, request, asker)
        case _:
            return tokens.decide_sweep(desk.world, NOW_MS)
