"""A crowd of clients that stand, and at a word all come back at once.

`python -m tests.faults.abuse.crowd CONFIG COUNT`: each logs in over TLS and asks for metadata. Whoever is turned away
tries again a little later, as clients do.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from itertools import cycle
from typing import Any

import uvloop

from penstock.client.settings import AdminSettings
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.security.exchange import Derive
from penstock.transport.dial import Link, LinkError
from penstock.transport.dial_security import Run
from penstock.transport.net import AsyncioNet

DIAL_MS = 30_000
BACKOFF_S = (0.05, 0.1, 0.2, 0.4, 0.8)


class Crowd:
    def __init__(self, config: str, count: int) -> None:
        settings = AdminSettings.of({"client_config": config})
        self._security = settings.dial_security()
        assert self._security is not None
        # Two thousand clients have as many processors to salt their passwords on; here there is one for all.
        self._security.run = _remembering(self._security.run)
        self._addresses = [
            (host, int(port)) for host, _, port in (each.rpartition(":") for each in settings.bootstrap_servers)
        ]
        self._count = count
        self._net = AsyncioNet(asyncio.get_running_loop())
        self._links: list[Link] = []
        self.tries = 0

    async def come(self) -> float:
        """Seconds until all stand and were answered."""
        began = time.monotonic()
        whom = cycle(self._addresses)
        self._links = await asyncio.gather(*(self._come(*next(whom)) for _ in range(self._count)))
        return time.monotonic() - began

    async def _come(self, host: str, port: int) -> Link:
        backoff = iter(BACKOFF_S)
        wait_s = 0.0
        while True:
            self.tries += 1
            try:
                link = await self._net.dial(host, port, DIAL_MS, self._security)
                await link.negotiate(timeout_ms=DIAL_MS)
                await link.request(MetadataRequest(topics=[]), 12, DIAL_MS)
                return link
            except LinkError:
                wait_s = next(backoff, wait_s)
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.5))

    def go(self) -> None:
        for link in self._links:
            link.abort()

    @property
    def standing(self) -> int:
        return sum(link.up for link in self._links)


def _remembering(run: Run) -> Run:
    known: dict[object, asyncio.Future[Any]] = {}

    async def remembered(work: Any, *arguments: Any) -> Any:
        what = getattr(work, "__self__", None)
        if not isinstance(what, Derive):
            return await run(work, *arguments)
        if what not in known:
            known[what] = asyncio.ensure_future(run(work, *arguments))
        return await known[what]

    return remembered


async def main(config: str, count: int) -> None:
    crowd = Crowd(config, count)
    tell(came_s=await crowd.come(), tries=crowd.tries)
    reads = asyncio.get_running_loop().run_in_executor
    while (await reads(None, sys.stdin.readline)).strip() == "again":
        stood, crowd.tries = crowd.standing, 0
        crowd.go()
        tell(stood=stood, came_s=await crowd.come(), tries=crowd.tries)
    crowd.go()


def tell(**words: Any) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], int(sys.argv[2])))
