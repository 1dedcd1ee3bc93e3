"""Everybody asks, and the answer counts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock.server.handlers
from penstock.model.config import BrokerSettings
from penstock.security.acls import AclEntry
from penstock.security.authorizer import Authorizer as Rules
from penstock.server.doors import CLUSTER_NAME, Context, Operation, Principal, ResourceType
from penstock.server.reception.authorize import (
    ASKERS_MAX,
    STANDARD,
    UNASKED,
    AclAuthorizer,
    AllowAll,
    Asked,
    BadAuthorizer,
    Recording,
    asks,
    authorizer_of,
    check_authorizer,
)
from tests.unit.security.acl_worlds import allow, image_with, remove

HANDLERS = sorted(Path(penstock.server.handlers.__file__).parent.glob("*.py"))


def context(authorizer: Any) -> Context:
    return Context(SimpleNamespace(authorizer=authorizer, audit=None), 3, 9)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [path for path in HANDLERS if path.stem != "__init__"], ids=lambda path: path.stem)
def test_every_handler_asks(path: Path) -> None:
    assert asks(path.read_text()) != (path.stem in UNASKED)


def test_without_acls_everything_is_allowed() -> None:
    assert context(AllowAll()).allow(Operation.ALTER, ResourceType.CLUSTER)


def test_a_question_names_operation_and_resource() -> None:
    refusal = Asked(Operation.WRITE, ResourceType.TOPIC, "secret")
    authorizer = Recording(refusal)
    ctx = context(authorizer)
    assert not ctx.allow(Operation.WRITE, ResourceType.TOPIC, "secret")
    assert ctx.allow(Operation.READ, ResourceType.TOPIC, "secret")
    assert ctx.allow(Operation.CREATE, ResourceType.CLUSTER)
    assert authorizer.asked == [
        refusal,
        Asked(Operation.READ, ResourceType.TOPIC, "secret"),
        Asked(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
    ]


@pytest.mark.parametrize(
    ("resource_type", "bits"),
    [
        (ResourceType.TOPIC, 0b1101_1111_1000),
        (ResourceType.GROUP, 0b1101_0100_1000),
        (ResourceType.CLUSTER, 0b1_1111_1010_0000),
    ],
)
def test_authorized_operations_are_a_bit_field(resource_type: ResourceType, bits: int) -> None:
    assert context(AllowAll()).authorized_operations(resource_type, "x") == bits


def test_a_refused_operation_is_missing_from_the_bit_field() -> None:
    everything = context(AllowAll()).authorized_operations(ResourceType.TOPIC, "x")
    some = context(Recording(Asked(Operation.DELETE, ResourceType.TOPIC, "x")))
    assert some.authorized_operations(ResourceType.TOPIC, "x") == everything & ~(1 << Operation.DELETE)


# ACLs decide

ALICE = Principal("User", "alice")


def by_acls(*super_users: str, loaded: bool = True, acls: tuple[AclEntry, ...] = ()) -> AclAuthorizer:
    authorizer = AclAuthorizer(Rules(super_users), lambda: 0.0)
    if loaded:
        authorizer.load(image_with(*acls))
    return authorizer


def may_write(authorizer: AclAuthorizer, name: str = "orders", host: str = "10.0.0.1") -> bool:
    return authorizer.allows(ALICE, host, Operation.WRITE, ResourceType.TOPIC, name)


def test_before_acls_are_known_only_super_users_may_do_anything() -> None:
    authorizer = by_acls("User:node", loaded=False)
    assert not may_write(authorizer)
    assert authorizer.allows(Principal("User", "node"), "::1", Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "x")
    authorizer.load(image_with(allow(Operation.WRITE, "orders")))
    assert may_write(authorizer)


def test_what_was_decided_is_forgotten_when_acls_change() -> None:
    image = image_with(allow(Operation.WRITE, "orders"))
    image.take_delta()
    authorizer = by_acls(loaded=False)
    authorizer.load(image)
    assert may_write(authorizer)
    assert may_write(authorizer)
    remove(image, 0)
    authorizer.follow(image, image.take_delta())
    assert not may_write(authorizer)


def test_addresses_are_compared_in_the_spelling_of_acls() -> None:
    mapped, zero = "::ffff:10.0.0.1", "::1"
    authorizer = by_acls(
        acls=(allow(Operation.WRITE, "a", host="10.0.0.1"), allow(Operation.WRITE, "b", host="0:0:0:0:0:0:0:1"))
    )
    assert may_write(authorizer, "a", mapped)
    assert may_write(authorizer, "b", zero)
    assert not may_write(authorizer, "b", mapped)


def test_how_many_askers_are_remembered_is_bounded() -> None:
    authorizer = by_acls(acls=(allow(Operation.WRITE, "orders"),))
    assert all(may_write(authorizer, host=f"10.0.{number >> 8}.{number & 255}") for number in range(ASKERS_MAX + 50))
    assert len(authorizer._askers) == ASKERS_MAX


def test_a_denial_is_told_once_in_a_while_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    ctx = Context(SimpleNamespace(authorizer=by_acls(), audit=None), 3, 9, principal=ALICE)  # type: ignore[arg-type]
    assert not ctx.may(Operation.READ, ResourceType.TOPIC, "orders")
    assert not ctx.allow(Operation.WRITE, ResourceType.TOPIC, "orders")
    assert not ctx.allow(Operation.WRITE, ResourceType.TOPIC, "others")
    assert caplog.messages == [
        "User:alice from 127.0.0.1: WRITE of TOPIC 'orders' is denied: no ACL is about the resource"
    ]


# What a file asks for

SECURED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "CLIENTS://127.0.0.1:1,NODES://127.0.0.1:2,CONTROLLER://127.0.0.1:3",
    "inter.broker.listener.name": "NODES",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:3",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,NODES:SASL_SSL,CONTROLLER:SSL",
    "listener.name.controller.ssl.client.auth": "required",
    "authorizer.class.name": STANDARD,
    "super.users": "User:CN=node-1,O=x;User:admin",
    "log.dirs": "/data",
}


def settings_with(**changed: str) -> BrokerSettings:
    return BrokerSettings.load(SECURED | {name.replace("__", "."): value for name, value in changed.items()})


def test_an_authorizer_is_made_of_the_settings_that_ask_for_one() -> None:
    settings = settings_with(allow__everyone__if__no__acl__found="TRUE")
    check_authorizer(settings)
    authorizer = authorizer_of(settings, lambda: 0.0)
    assert isinstance(authorizer, AclAuthorizer)
    assert not may_write(authorizer)
    assert authorizer.allows(Principal("User", "CN=node-1,O=x"), "", Operation.ALTER, ResourceType.CLUSTER, "x")
    authorizer.load(image_with())
    assert may_write(authorizer)


def test_without_the_property_there_is_none() -> None:
    settings = settings_with(authorizer__class__name="", super__users="")
    check_authorizer(settings)
    assert isinstance(authorizer_of(settings, lambda: 0.0), AllowAll)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"authorizer__class__name": "com.example.Mine"}, "com.example.Mine, a Java class that cannot be loaded here"),
        ({"super__users": "admin"}, "expected a string in format principalType:principalName but got admin"),
        ({"allow__everyone__if__no__acl__found": "yes"}, "is true or false"),
        ({"listener__security__protocol__map": "NODES:SASL_SSL,CONTROLLER:PLAINTEXT"}, "listener CONTROLLER: it is PL"),
        ({"listener__security__protocol__map": "NODES:PLAINTEXT,CONTROLLER:SSL"}, "listener NODES: it is PLAINTEXT"),
        ({"listener__name__controller__ssl__client__auth": "requested"}, "listener CONTROLLER: it is SSL without"),
    ],
)
def test_an_authorizer_that_protects_nothing_is_refused(changed: dict[str, str], why: str) -> None:
    if "listener__security__protocol__map" in changed:
        changed["listener__security__protocol__map"] += ",CLIENTS:PLAINTEXT"
    with pytest.raises(BadAuthorizer, match=why):
        check_authorizer(settings_with(**changed))
