"""Who belongs to the cluster: voters of the metadata quorum come and go, brokers that are gone are forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.client.admin.session import Session, check
from penstock.client.errors import BadSetting
from penstock.model.ids import Uuid, uuid_parse
from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest


class Listener(NamedTuple):
    """Where a controller is reached by the others: `CONTROLLER://host:9093`."""

    name: str
    host: str
    port: int


async def add_voter(session: Session, node_id: int, directory_id: str, endpoints: Sequence[str]) -> None:
    """Makes a controller that follows the quorum one of its voters; returns when the quorum has agreed."""
    listeners = [_listener(endpoint) for endpoint in endpoints]
    if not listeners:
        raise BadSetting("a voter needs an endpoint where the other controllers reach it")
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=session.request_timeout_ms,
        voter_id=node_id,
        voter_directory_id=_directory(directory_id),
        listeners=[AddRaftVoterRequest.Listener(name=at.name, host=at.host, port=at.port) for at in listeners],
    )

    async def call() -> None:
        reply = await session.any(request)
        check(reply.error_code, reply.error_message, f"voter {node_id}")

    await session.patient(call)


async def remove_voter(session: Session, node_id: int, directory_id: str) -> None:
    """Takes a voter out of the quorum; returns when the quorum has agreed."""
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=node_id, voter_directory_id=_directory(directory_id))

    async def call() -> None:
        reply = await session.any(request)
        check(reply.error_code, reply.error_message, f"voter {node_id}")

    await session.patient(call)


async def unregister_broker(session: Session, node_id: int) -> None:
    """Forgets a broker that is gone for good."""

    async def call() -> None:
        reply = await session.any(UnregisterBrokerRequest(broker_id=node_id))
        check(reply.error_code, reply.error_message, f"broker {node_id}")

    await session.patient(call)


def _listener(endpoint: str) -> Listener:
    name, scheme_end, address = endpoint.partition("://")
    host, colon, port = address.rpartition(":")
    if not scheme_end or not colon or not host or not name or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise BadSetting(f"{endpoint!r} is no endpoint of a controller; one looks like CONTROLLER://host:9093")
    return Listener(name, host.removeprefix("[").removesuffix("]"), int(port))


def _directory(text: str) -> Uuid:
    try:
        return uuid_parse(text)
    except ValueError as wrong:
        raise BadSetting(f"directory id {text!r}: {wrong}") from None
