"""A change that a client asks of any broker reaches the active controller, with the client's own name on it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    INVALID_REQUEST,
    NONE,
    NOT_CONTROLLER,
    PRINCIPAL_DESERIALIZATION_FAILURE,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    Refused,
)
from penstock.protocol.codec import decode, encode
from penstock.protocol.envelopes import client_of, host_bytes, host_of, opened, sealed
from penstock.protocol.frame import encode_request
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.security.authorizer import Authorizer as Rules
from penstock.server.controller.channel import ControllerChannel
from penstock.server.controller.forwarding import Forwarding, ForwardingDoor
from penstock.server.doors import Context, ListenerInfo, Operation, Principal, ResourceType
from penstock.server.handlers import envelope
from penstock.server.loops.crossing import one_loop
from penstock.server.loops.ports import SystemClock
from penstock.server.peers import Address
from penstock.server.quorum.metadata_driver import MetadataMirror
from penstock.server.reception.authorize import AclAuthorizer, Asked, Recording
from penstock.server.reception.dispatch import CONTROLLER_SERVED, Dispatch
from tests.walks.control_plane import ControlPlane, walk
from tests.walks.every_api import codes

ALICE = Principal("User", "alice")
CONTROLLERS = ListenerInfo("CONTROLLER", "127.0.0.1", 9093, for_controllers=True)
CREATE_VERSION = 7


def enveloped(request: CreateTopicsRequest, ctx: Context) -> EnvelopeRequest:
    return sealed(request, ctx.api_version, client_id=ctx.client_id, principal=ctx.principal, host=ctx.client_host)


class ElsewhereQuorum:
    """The quorum as a broker sees it whose controller is another node."""

    leading = False
    leader_address = Address("controller", 9093)

    def when_leader_changes(self, listener: Any) -> None:
        pass


class Wire:
    """Carries envelopes to the controller of `plane`, through their bytes."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.carried: list[EnvelopeRequest] = []

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        self.carried.append(message)
        seen, _ = decode(EnvelopeRequest, version, encode(message, version))
        reply = await open_envelope(self.plane, seen)
        return decode(EnvelopeResponse, version, encode(reply, version))[0]


async def open_envelope(plane: ControlPlane, request: EnvelopeRequest) -> EnvelopeResponse:
    node = replace(plane.services(), apis=Dispatch(CONTROLLER_SERVED))
    ctx = Context(node, 58, 0, listener=CONTROLLERS, client_host="10.0.0.9")
    reply = envelope.handle(ctx, request)
    answered: EnvelopeResponse = reply if isinstance(reply, EnvelopeResponse) else await reply
    return answered


class Broker:
    """A broker whose controller is elsewhere and whose image is its own."""

    def __init__(self, plane: ControlPlane) -> None:
        self.wire = Wire(plane)
        self.metadata = MetadataMirror(plane.metadata.node_id, plane.cluster_id)
        self.channel = ControllerChannel(ElsewhereQuorum(), None, self.wire, SystemClock(), request_timeout_ms=300)
        forwarding = Forwarding(self.channel, plane.quorum, None, self.wire)
        self.forwarding = ForwardingDoor(forwarding, one_loop().control, self.metadata)
        self.context = Context(
            plane.services(), 19, CREATE_VERSION, "billing", principal=ALICE, client_host="10.1.2.3"
        )  # fmt: skip

    def follow(self, plane: ControlPlane) -> None:
        self.metadata.replace(plane.image.copy())


def creation(*names: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic
    topics = [topic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=1_000)


def test_the_controller_decides_as_if_the_client_had_asked_it() -> None:
    async def steps(plane: ControlPlane) -> None:
        plane.authorizer = recording = Recording()
        broker = Broker(plane)
        asking = asyncio.ensure_future(broker.forwarding.submit(creation("orders"), broker.context))
        while plane.image.topic("orders") is None:
            await asyncio.sleep(0)
        broker.follow(plane)
        reply: CreateTopicsResponse = await asking
        assert [(each.name, each.error_code) for each in reply.topics] == [("orders", NONE.code)]
        assert Asked(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster") in recording.asked
        (carried,) = broker.wire.carried
        assert client_of(carried.request_principal) == (ALICE, False)
        assert host_of(carried.client_host_address) == "10.1.2.3"

    walk(steps)


def test_the_reply_waits_until_this_broker_shows_the_topic() -> None:
    async def steps(plane: ControlPlane) -> None:
        broker = Broker(plane)
        asking = asyncio.ensure_future(broker.forwarding.submit(creation("orders"), broker.context))
        while plane.image.topic("orders") is None:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not asking.done()
        broker.follow(plane)
        await asking
        assert broker.metadata.image.topic("orders") is not None

    walk(steps)


def test_the_client_not_the_broker_needs_the_right() -> None:
    class OnlyBrokers(Recording):
        def allows(self, principal: Principal, *question: Any) -> bool:
            return principal != ALICE

    async def steps(plane: ControlPlane) -> None:
        plane.authorizer = OnlyBrokers()
        broker = Broker(plane)
        reply: CreateTopicsResponse = await broker.forwarding.submit(creation("orders"), broker.context)
        assert [each.error_code for each in reply.topics] == [TOPIC_AUTHORIZATION_FAILED.code]
        assert plane.image.topic("orders") is None

    walk(steps)


def test_only_brokers_may_send_envelopes() -> None:
    async def steps(plane: ControlPlane) -> None:
        plane.authorizer = Recording(Asked(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"))
        reply = await open_envelope(plane, enveloped(creation("orders"), Broker(plane).context))
        assert reply.error_code == CLUSTER_AUTHORIZATION_FAILED.code

    walk(steps)


def test_a_controller_that_lost_the_lead_sends_the_envelope_back() -> None:
    async def steps(plane: ControlPlane) -> None:
        broker = Broker(plane)
        plane.controller.resign()
        reply = await open_envelope(plane, enveloped(creation("orders"), broker.context))
        assert (reply.error_code, reply.response_data) == (NOT_CONTROLLER.code, None)
        with pytest.raises(Refused) as told:
            await broker.forwarding.submit(creation("orders"), broker.context)
        assert told.value.error is REQUEST_TIMED_OUT
        assert len(broker.wire.carried) > 1
        plane.controller.lead()

    walk(steps)


def test_what_is_no_business_of_a_controller_comes_back() -> None:
    async def steps(plane: ControlPlane) -> None:
        honest = enveloped(creation("orders"), Broker(plane).context)
        for data, error in (
            (encode_request(0, None, MetadataRequest(), 12)[4:], UNSUPPORTED_VERSION),
            (encode_request(0, None, honest, 0)[4:], INVALID_REQUEST),
            (honest.request_data[:20], UNSUPPORTED_VERSION),
            (b"", UNSUPPORTED_VERSION),
        ):
            assert (await open_envelope(plane, replace(honest, request_data=data))).error_code == error.code
        for principal in (None, b"", b"\0\1"):
            reply = await open_envelope(plane, replace(honest, request_principal=principal))
            assert reply.error_code == PRINCIPAL_DESERIALIZATION_FAILURE.code
        assert (await open_envelope(plane, replace(honest, client_host_address=b"abc"))).error_code == (
            INVALID_REQUEST.code
        )
        assert plane.image.topic("orders") is None

    walk(steps)


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "::1", "fe80::1"])
def test_an_address_survives_the_envelope(host: str) -> None:
    assert host_of(host_bytes(host)) == host


def test_a_scope_and_a_lost_address_are_left_out() -> None:
    assert host_of(host_bytes("fe80::1%eth0")) == "fe80::1"
    assert host_of(host_bytes("")) == "0.0.0.0"


# ACLs, users and limits

SECURITY_CASES = [
    (
        30,
        3,
        CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=2, resource_name="t", principal="User:bob", host="*", operation=3, permission_type=3
                )
            ]
        ),
    ),
    (
        49,
        1,
        AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequest.EntryData(
                    entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="bob")],
                    ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1.0)],
                )
            ]
        ),
    ),
    (
        51,
        0,
        AlterUserScramCredentialsRequest(
            upsertions=[
                AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                    name="bob", mechanism=1, iterations=4_096, salt=b"s", salted_password=b"p"
                )
            ]
        ),
    ),
]


def by_acls(metadata: Any, *super_users: str) -> AclAuthorizer:
    authorizer = AclAuthorizer(Rules(super_users), lambda: 0.0)
    authorizer.load(metadata.image)
    metadata.on_publish(authorizer.follow)
    return authorizer


@pytest.mark.parametrize(("key", "version", "request_"), SECURITY_CASES, ids=["acls", "quotas", "users"])
def test_changes_of_security_go_to_the_controller_as_their_client_and_show_here_before_the_reply(
    key: int, version: int, request_: Any
) -> None:
    async def steps(plane: ControlPlane) -> None:
        # The broker may open envelopes; what is in them takes the right of its client.
        plane.authorizer = by_acls(plane.metadata, "User:ANONYMOUS", str(ALICE))
        broker = Broker(plane)
        node = replace(plane.services(), authorizer=by_acls(broker.metadata, str(ALICE)))
        ctx = Context(node, key, version, principal=ALICE, client_host="10.1.2.3")
        before = plane.image.offset
        asking = asyncio.ensure_future(broker.forwarding.submit(request_, ctx))
        while plane.image.offset == before:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not asking.done()
        broker.follow(plane)
        reply = await asking
        assert codes(reply) == {NONE.code}
        (carried,) = broker.wire.carried
        assert client_of(carried.request_principal) == (ALICE, False)

    walk(steps)


@pytest.mark.parametrize(("key", "version", "request_"), SECURITY_CASES, ids=["acls", "quotas", "users"])
def test_a_client_without_the_right_is_refused_by_the_controller(key: int, version: int, request_: Any) -> None:
    async def steps(plane: ControlPlane) -> None:
        plane.authorizer = by_acls(plane.metadata, "User:ANONYMOUS")
        broker = Broker(plane)
        ctx = Context(plane.services(), key, version, principal=ALICE, client_host="10.1.2.3")
        before = plane.image.offset
        reply = await broker.forwarding.submit(request_, ctx)
        assert codes(reply) == {CLUSTER_AUTHORIZATION_FAILED.code}
        assert plane.image.offset == before

    walk(steps)


def test_a_token_begets_no_token_in_an_envelope() -> None:
    async def steps(plane: ControlPlane) -> None:
        request = CreateDelegationTokenRequest()
        for by_token, code in ((True, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code), (False, NONE.code)):
            letter = sealed(request, 2, client_id=None, principal=ALICE, host="10.1.2.3", by_token=by_token)
            assert client_of(letter.request_principal) == (ALICE, by_token)
            reply = opened(await open_envelope(plane, letter), 38, 2)
            assert (reply.error_code, reply.principal_name) == (code, "alice")

    walk(steps, properties={"delegation.token.secret.key": "secret"})
