"""Who is in the cluster and how to reach them: one link per broker, made when first needed."""

from __future__ import annotations

import asyncio
import getpass
from typing import TYPE_CHECKING, Any

import penstock
from penstock.model.errors import PenstockError
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse
from penstock.protocol.wire import schema_of
from penstock.transport.dial import Link, LinkError
from penstock.transport.net import AsyncioNet

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_PORT = 9092


def parse_bootstrap(text: str) -> list[tuple[str, int]]:
    """`a:9092,b` becomes [("a", 9092), ("b", 9092)]; ValueError says which part is wrong."""
    found = []
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        host, colon, port = part.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = part, str(DEFAULT_PORT)
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{part!r} is no address: expected host:port")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ValueError("no bootstrap address was given")
    return found


class ClusterView:
    """Links to the brokers of one cluster. Close it, or use it as an async context manager."""

    def __init__(self, bootstrap: str, *, timeout_ms: int = 30_000, client_id: str = "penstock") -> None:
        self._bootstrap, self._timeout_ms, self._client_id = parse_bootstrap(bootstrap), timeout_ms, client_id
        self._net: AsyncioNet | None = None
        self._links: dict[tuple[str, int], Link] = {}
        self._addresses: dict[int, tuple[str, int]] = {}

    async def __aenter__(self) -> ClusterView:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()

    async def ask_any(self, message: object) -> Any:
        """The reply of whichever broker answers first, bootstrap addresses in their order."""
        addresses = [*self._links, *self._bootstrap, *self._addresses.values()]
        failure: LinkError | None = None
        for address in dict.fromkeys(addresses):
            try:
                return await self._ask(address, message)
            except LinkError as broken:
                failure = failure or broken
        assert failure is not None, "there is at least one bootstrap address"
        raise failure

    async def ask(self, node_id: int, message: object) -> Any:
        """The reply of one broker, known from metadata."""
        if node_id not in self._addresses:
            await self.metadata([])
        address = self._addresses.get(node_id)
        if address is None:
            raise PenstockError(f"broker {node_id} is not in the cluster's metadata")
        return await self._ask(address, message)

    async def metadata(self, topics: Sequence[str] | None) -> MetadataResponse:
        """Metadata of the named topics, of all for None; never creates one."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        reply: MetadataResponse = await self.ask_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        self._addresses.update({broker.node_id: (broker.host, broker.port) for broker in reply.brokers})
        return reply

    async def _ask(self, address: tuple[str, int], message: object) -> Any:
        link = self._links.get(address)
        if link is None or not link.up:
            link = self._links[address] = await self._dial(address)
        return await link.request(message, link.newest(schema_of(type(message)).key), self._timeout_ms)

    async def _dial(self, address: tuple[str, int]) -> Link:
        if self._net is None:
            self._net = AsyncioNet(asyncio.get_running_loop())
        link: Link = await self._net.dial(*address, self._timeout_ms)
        link.client_id = self._client_id
        await link.negotiate("penstock", penstock.__version__, self._timeout_ms)
        return link


def default_client_id() -> str:
    """Names the person behind a command, so that broker logs can tell them apart."""
    try:
        return f"penstock-cli-{getpass.getuser()}"
    except (KeyError, OSError):
        return "penstock-cli"
