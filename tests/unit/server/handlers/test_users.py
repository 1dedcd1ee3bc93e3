"""SCRAM users: made, told without their secrets, removed; words and numbers are those of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Any

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, DUPLICATE_RESOURCE, RESOURCE_NOT_FOUND
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from penstock.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from penstock.security.scram.keys import SHA_256, SHA_512, credential_of
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import alter_user_scram_credentials, describe_user_scram_credentials
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
UserName = DescribeUserScramCredentialsRequest.UserName


def upsertion(name: str, mechanism: int = 2) -> Upsertion:
    return Upsertion(name=name, mechanism=mechanism, iterations=4_096, salt=b"salt", salted_password=b"salted")


async def alter(plane: ControlPlane, *changes: Deletion | Upsertion) -> list[tuple[str, int]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, Deletion)],
        upsertions=[each for each in changes if isinstance(each, Upsertion)],
    )
    reply = await plane.ask(alter_user_scram_credentials, request, 0)
    return [(each.user, each.error_code) for each in reply.results]


async def describe(plane: ControlPlane, *names: str) -> Any:
    users = [UserName(name=name) for name in names] or None
    return await plane.ask(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=users), 0)


def test_users_are_made_told_and_removed() -> None:
    async def steps(plane: ControlPlane) -> None:
        assert await alter(plane, upsertion("bob"), upsertion("alice", 1)) == [("bob", 0), ("alice", 0)]
        assert await alter(plane, upsertion("alice", 2)) == [("alice", 0)]
        reply = await describe(plane)
        assert reply.error_code == 0
        assert [
            (each.user, each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
            for each in reply.results
        ] == [("alice", 0, [(1, 4_096), (2, 4_096)]), ("bob", 0, [(2, 4_096)])]
        assert await alter(plane, Deletion(name="alice", mechanism=1)) == [("alice", 0)]
        assert set(plane.image.scram) == {(2, "alice"), (2, "bob")}

    walk(steps)


def test_what_is_kept_checks_logins() -> None:
    async def steps(plane: ControlPlane) -> None:
        await alter(plane, upsertion("alice", SHA_512.type))
        await alter(plane, upsertion("bob", SHA_256.type))
        for mechanism, name in ((SHA_512, "alice"), (SHA_256, "bob")):
            kept = plane.image.scram[mechanism.type, name]
            wanted = credential_of(mechanism, b"salted", b"salt", 4_096)
            assert (kept.stored_key, kept.server_key) == (wanted.stored_key, wanted.server_key)

    walk(steps)


def test_unknown_and_repeated_names_are_told_so() -> None:
    async def steps(plane: ControlPlane) -> None:
        await alter(plane, upsertion("alice"))
        reply = await describe(plane, "alice", "nobody", "bob", "bob")
        assert [(each.user, each.error_code) for each in reply.results] == [
            ("alice", 0),
            ("nobody", RESOURCE_NOT_FOUND.code),
            ("bob", DUPLICATE_RESOURCE.code),
        ]

    walk(steps)


def test_who_may_not_look_or_alter_is_refused_for_every_user() -> None:
    cluster = (ResourceType.CLUSTER, "kafka-cluster")
    no = Recording(Asked(Operation.DESCRIBE, *cluster), Asked(Operation.ALTER, *cluster))
    denied = CLUSTER_AUTHORIZATION_FAILED.code

    async def steps(plane: ControlPlane) -> None:
        altered = await alter(plane, upsertion("bob"), Deletion(name="alice", mechanism=1), upsertion("alice"))
        assert altered == [("alice", denied), ("bob", denied)]
        reply = await describe(plane, "alice", "bob")
        assert (reply.error_code, [each.error_code for each in reply.results]) == (denied, [denied] * 2)
        reply = await describe(plane)
        assert (reply.error_code, reply.results) == (denied, [])
        assert not plane.image.scram

    walk(steps, authorizer=no)
