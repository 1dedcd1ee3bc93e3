"""Both brokers, asked the same as the same user."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from penstock.model.secret import Secret
from penstock.security.plain import MECHANISM
from penstock.transport.dial import Link, Severed, TimedOut
from penstock.transport.dial_security import DialSecurity
from penstock.transport.login import PasswordCredentials
from penstock.transport.net import AsyncioNet
from tests.compat.answers.comparing import CLOSED, SILENT, Comparison, Difference
from tests.compat.answers.duo import ANSWER_MS, Exchange
from tests.compat.answers.pairs import Pairs
from tests.compat.authorization.cast import ADMIN, ANONYMOUS
from tests.compat.authorization.nodes import password
from tests.compat.node import Node


class Side:
    """One broker, with a connection for everybody who asked it something."""

    def __init__(self, node: Node, port: int) -> None:
        self.node, self.port = node, port
        self._links: dict[tuple[str, bool], Link] = {}

    async def ask(self, user: str, request: Any, version: int, *, controller: bool = False) -> Any:
        """The answer, `CLOSED` or `SILENT`."""
        link = await self.link(user, controller=controller)
        try:
            return await link.request(request, version, ANSWER_MS)
        except Severed:
            del self._links[user, controller]
            return CLOSED
        except TimedOut:
            link.close()
            del self._links[user, controller]
            return SILENT

    async def admin(self, request: Any, version: int) -> Any:
        return await self.ask(ADMIN, request, version)

    async def link(self, user: str, *, controller: bool = False) -> Link:
        found = self._links.get((user, controller))
        if found is None:
            found = self._links[user, controller] = await self._dialled(user, controller)
        return found

    async def _dialled(self, user: str, controller: bool) -> Link:
        net = AsyncioNet(asyncio.get_running_loop())
        if user == ANONYMOUS:
            return await net.dial("127.0.0.1", self.node.port, ANSWER_MS)
        credentials = PasswordCredentials(MECHANISM, user, Secret(password(user)))
        port = self.node.controller_port if controller else self.port
        link = await net.dial("127.0.0.1", port, ANSWER_MS, DialSecurity(None, credentials))
        await link.negotiate()
        return link

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()


class Pair:
    """Our broker and Apache Kafka's."""

    def __init__(self, ours: Side, theirs: Side) -> None:
        self.ours, self.theirs = ours, theirs
        self.pairs = Pairs()
        for mine, other in (
            (ours.port, theirs.port),
            (ours.node.port, theirs.node.port),
            (ours.node.controller_port, theirs.node.controller_port),
        ):
            self.pairs.bind("port", mine, other)
            self.pairs.bind_words(f":{mine}", f":{other}")
        self.pairs.bind_words(str(ours.node.data_dir), str(theirs.node.data_dir))
        self._comparison = Comparison(self.pairs, int(time.time() * 1_000))

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.ours, self.theirs

    async def ask(self, user: str, api: str, request: Any, version: int, *, controller: bool = False) -> Exchange:
        theirs = self.pairs.translated(request)
        answers = await asyncio.gather(
            self.ours.ask(user, request, version, controller=controller),
            self.theirs.ask(user, theirs, version, controller=controller),
        )
        return Exchange(api, version, request, *answers)

    def differences(self, exchange: Exchange) -> list[Difference]:
        return self._comparison.differences(exchange.ours, exchange.theirs)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()
