"""Starts a console and stops it: a socket, a sampler for each cluster, the server that answers browsers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import uvicorn

from penstock.console.app import application
from penstock.console.auditing import ChangeLog
from penstock.console.history.keeping import Keeper
from penstock.console.messages.thread import ReadingThread
from penstock.console.routes.desk import Desks
from penstock.console.sampler.past import Past
from penstock.console.sampler.sampler import Sampler
from penstock.console.settings import ClusterAddress, ConsoleRefused, ConsoleSettings
from penstock.console.stream.hub import Hub
from penstock.console.stream.subscriptions import Subscriptions

LINGER_S: Final = 3
"""Requests that are under way when the console stops have so long."""
BACKLOG: Final = 512


class Served(uvicorn.Server):
    """A server that says good-bye to its streams before it waits for connections to end."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to whoever runs this; a server that raised them again would end before its samplers."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)


def listen(settings: ConsoleSettings) -> socket.socket:
    """A socket that listens. ConsoleRefused when somebody else has the port."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(BACKLOG)
    except OSError as failure:
        listening.close()
        raise ConsoleRefused(
            f"cannot listen on {settings.host}:{settings.port}: {failure.strerror}; choose another with --port"
        ) from None
    return listening


def address_of(settings: ConsoleSettings, listening: socket.socket) -> str:
    """What to open in a browser."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "https" if settings.certfile else "http"
    return f"{scheme}://{host}:{listening.getsockname()[1]}{settings.base_path}/"


async def serve(
    settings: ConsoleSettings, listening: socket.socket, stop: asyncio.Event, ready: Callable[[str], None]
) -> None:
    """Serves until `stop` is set. `ready` is told the address."""
    samplers = {
        address.name: Sampler(
            address, settings.every_ms, partial(_keeper, address, settings) if settings.history else None
        )
        for address in settings.clusters
    }
    reading, changes = ReadingThread(), ChangeLog(settings.audit_log)
    desks = Desks(settings, samplers, reading, changes, lambda session: hub.left(session.key))
    hub = Hub(samplers.values(), desks.vision_of, Subscriptions(reading))
    server = Served(
        uvicorn.Config(
            application(settings, desks, hub),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=LINGER_S,
            ssl_certfile=settings.certfile,
            ssl_keyfile=settings.keyfile,
        ),
        hub,
    )
    threads: list[Sampler | ReadingThread] = [reading, *samplers.values()]
    for thread in threads:
        thread.start()
    serving = asyncio.create_task(server.serve([listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        ready(address_of(settings, listening))
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
        await desks.close()
        await asyncio.to_thread(_stop, threads)
        changes.close()


def _keeper(address: ClusterAddress, settings: ConsoleSettings, past: Past) -> Keeper:
    return Keeper(address, past, read_only=settings.read_only)


def _stop(threads: Sequence[Sampler | ReadingThread]) -> None:
    for thread in threads:
        thread.stop()
