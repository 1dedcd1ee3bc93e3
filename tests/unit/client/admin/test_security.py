"""ACLs, users and limits through the Admin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from penstock import blocking
from penstock.client.admin import (
    Acl,
    AclFilter,
    Admin,
    QuotaEntity,
    ScramCredential,
    ScramPassword,
    ScramRemoval,
)
from penstock.client.errors import BrokerRefused, NotAllowed
from penstock.model.errors import INVALID_REQUEST, RESOURCE_NOT_FOUND, SECURITY_DISABLED, UNACCEPTABLE_CREDENTIAL
from penstock.security.authorizer import Authorizer as Rules
from penstock.security.scram.keys import SHA_256, SHA_512, credential_of
from penstock.server.reception.authorize import AclAuthorizer
from penstock.testing import EmbeddedBroker
from tests.unit.client.admin.conftest import Administer
from tests.walks.data_plane import Client, Machine, walk

READS = Acl("User:alice", "read", "topic", "orders")
WRITES = Acl("User:alice", "write", "topic", "ord", pattern="prefixed", host="10.0.0.1")
ALTERS = Acl("User:bob", "alter", "cluster", permission="deny")


def by_acls(work: Callable[[Admin, Machine], Awaitable[None]], *super_users: str) -> None:
    """Runs `work` against a node whose ACLs decide. Everybody is ANONYMOUS: it listens in the plain."""

    async def steps(machine: Machine, _client: Client) -> None:
        async with Admin(bootstrap_servers=f"127.0.0.1:{machine.node.port}") as admin:
            await work(admin, machine)

    walk(steps, authorizer=AclAuthorizer(Rules(super_users), lambda: 0.0))


def test_acls_are_made_listed_and_removed() -> None:
    async def work(admin: Admin, machine: Machine) -> None:
        assert (await admin.create_acls([READS, WRITES, ALTERS])).checked().keys() == {READS, WRITES, ALTERS}
        assert await admin.describe_acls() == sorted([READS, WRITES, ALTERS])
        assert await admin.describe_acls(AclFilter(principal="User:bob")) == [ALTERS]
        assert await admin.describe_acls(AclFilter(resource="topic", name="orders", pattern="match")) == [READS, WRITES]
        nothing, topics = AclFilter(principal="User:carol"), AclFilter(resource="topic")
        assert (await admin.delete_acls([nothing, topics])).checked() == {nothing: [], topics: [READS, WRITES]}
        assert await admin.describe_acls() == [ALTERS]

    by_acls(work, "User:ANONYMOUS")


def test_an_acl_that_is_refused_says_why_beside_those_that_are_made() -> None:
    async def work(admin: Admin, machine: Machine) -> None:
        wrong = Acl("alice", "read", "topic", "orders")
        results = await admin.create_acls([READS, wrong])
        assert list(results.done) == [READS]
        assert results.failed[wrong].error is INVALID_REQUEST
        assert "Could not parse principal" in str(results.failed[wrong])

    by_acls(work, "User:ANONYMOUS")


def test_who_may_not_is_told_so() -> None:
    async def work(admin: Admin, machine: Machine) -> None:
        assert isinstance((await admin.create_acls([READS])).failed[READS], NotAllowed)
        everything = AclFilter()
        assert isinstance((await admin.delete_acls([everything])).failed[everything], NotAllowed)
        for call in (admin.describe_acls, admin.describe_scram_users, admin.describe_quotas):
            with pytest.raises(NotAllowed):
                await call()
        alice = QuotaEntity(user="alice")
        assert isinstance((await admin.alter_quotas({alice: {"producer_byte_rate": 1}})).failed[alice], NotAllowed)
        password = ScramPassword("alice", "secret")
        assert isinstance((await admin.alter_scram_users([password])).failed[password], NotAllowed)

    by_acls(work)


def test_words_that_nobody_knows_are_refused_here() -> None:
    for make in (
        lambda: Acl("User:a", "any", "topic", "t"),
        lambda: Acl("User:a", "read", "topics", "t"),
        lambda: Acl("User:a", "read", "topic", "t", permission="perhaps"),
        lambda: AclFilter(pattern="regex"),
        lambda: ScramPassword("a", "b", "SCRAM-SHA-1"),
    ):
        with pytest.raises(ValueError, match="is none of"):
            make()


def test_without_an_authorizer_there_are_no_acls(administer: Administer) -> None:
    async def work(admin: Admin) -> None:
        assert (await admin.create_acls([READS])).failed[READS].error is SECURITY_DISABLED
        with pytest.raises(BrokerRefused, match="No Authorizer is configured"):
            await admin.describe_acls()

    administer(work)


def test_users_are_made_listed_and_removed(administer: Administer) -> None:
    async def work(admin: Admin) -> None:
        both = [ScramPassword("alice", "s3cret"), ScramPassword("alice", "s3cret", "SCRAM-SHA-256", 8_192)]
        assert not (await admin.alter_scram_users([*both, ScramPassword("bob", "b")])).failed
        told = [ScramCredential("SCRAM-SHA-256", 8_192), ScramCredential("SCRAM-SHA-512", 4_096)]
        assert (await admin.describe_scram_users()).done["alice"] == told
        results = await admin.describe_scram_users(["alice", "nobody"])
        assert results.done == {"alice": told}
        assert results.failed["nobody"].error is RESOURCE_NOT_FOUND
        await admin.alter_scram_users([ScramRemoval("alice"), ScramRemoval("alice", "SCRAM-SHA-256")])
        assert "alice" not in (await admin.describe_scram_users()).done
        weak, gone = ScramPassword("carol", "c", iterations=10), ScramRemoval("alice")
        failed = (await admin.alter_scram_users([weak, gone])).failed
        assert (failed[weak].error, failed[gone].error) == (UNACCEPTABLE_CREDENTIAL, RESOURCE_NOT_FOUND)

    administer(work)


def test_a_password_is_kept_as_keys_that_check_it() -> None:
    async def work(admin: Admin, machine: Machine) -> None:
        changes = [ScramPassword("alice", "pässword", "SCRAM-SHA-256"), ScramPassword("bob", "b")]
        (await admin.alter_scram_users(changes)).checked()
        scram = machine.node.control.metadata.image.scram
        for mechanism, user, password in ((SHA_256, "alice", "pässword"), (SHA_512, "bob", "b")):
            kept = scram[mechanism.type, user]
            salted = mechanism.derive(password, kept.salt, kept.iterations).run()
            wanted = credential_of(mechanism, salted, kept.salt, kept.iterations)
            assert (kept.stored_key, kept.server_key) == (wanted.stored_key, wanted.server_key)

    by_acls(work, "User:ANONYMOUS")


def test_a_password_is_in_no_repr() -> None:
    assert "s3cret" not in repr(ScramPassword("alice", "s3cret"))


def test_limits_are_set_listed_and_removed(administer: Administer) -> None:
    async def work(admin: Admin) -> None:
        alice, everybody = QuotaEntity(user="alice"), QuotaEntity(user="")
        both, address = QuotaEntity("alice", "batch"), QuotaEntity(ip="10.0.0.1")
        rates = {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
        changes = {alice: rates, everybody: {"consumer_byte_rate": 7.0}, both: rates}
        (await admin.alter_quotas({**changes, address: {"connection_creation_rate": 3.0}})).checked()
        assert await admin.describe_quotas() == {**changes, address: {"connection_creation_rate": 3.0}}
        assert (await admin.describe_quotas(alice)).keys() == {alice, both}
        assert (await admin.describe_quotas(alice, strict=True)).keys() == {alice}
        assert (await admin.describe_quotas(everybody)).keys() == {everybody}
        (await admin.alter_quotas({both: dict.fromkeys(rates)})).checked()
        assert both not in await admin.describe_quotas()
        wrong = await admin.alter_quotas({alice: {"bytes": 1.0}}, validate_only=True)
        assert wrong.failed[alice].error is INVALID_REQUEST

    administer(work)


def test_the_blocking_twin_does_the_same(shared: EmbeddedBroker) -> None:
    with blocking.Admin(bootstrap_servers=shared.bootstrap_servers) as admin:
        assert not admin.alter_scram_users([ScramPassword("dora", "d")]).failed
        assert admin.describe_scram_users(["dora"]).checked() == {"dora": [ScramCredential("SCRAM-SHA-512", 4_096)]}
        client = QuotaEntity(client_id="dora")
        admin.alter_quotas({client: {"producer_byte_rate": 5}}).checked()
        assert admin.describe_quotas(client) == {client: {"producer_byte_rate": 5.0}}
        assert admin.create_acls([READS]).failed[READS].error is SECURITY_DISABLED
        assert admin.delete_acls([AclFilter()]).failed[AclFilter()].error is SECURITY_DISABLED
        with pytest.raises(BrokerRefused):
            admin.describe_acls()
