"""Starts a console and stops it: a socket, a sampler for each cluster, the server that answers browsers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn

from penstock.console.app import application
from penstock.console.auditing import AuditTrail
from penstock.console.messages.thread import ReadingThread
from penstock.console.routes.desk import Desks
from penstock.console.sampler.keeping import Keeper
from penstock.console.sampler.past import Past
from penstock.console.sampler.sampler import Sampler
from penstock.console.settings import ClusterAddress, ConsoleRefused, ConsoleSettings
from penstock.console.stream.hub import Hub
from penstock.console.stream.subscriptions import Subscriptions

log = logging.getLogger(__name__)

CERTIFICATE_EVERY_S: Final = 5.0
LINGER_S: Final = 3
"""Requests that are under way when the console stops have so long."""
BACKLOG: Final = 512
HEADERS_MAX: Final = 256 << 10
"""A request's line and headers: the address of a page far into very many partitions is that long."""


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
    trail = AuditTrail(settings.audit_log)
    try:
        trail.open()
    except ConsoleRefused:
        listening.close()
        raise
    samplers = {
        address.name: Sampler(
            address, settings.every_ms, partial(_keeper, address, settings) if settings.history else None
        )
        for address in settings.clusters
    }
    reading = ReadingThread()
    desks = Desks(settings, samplers, reading, trail, lambda session: hub.left(session.key))
    hub = Hub(samplers.values(), desks.vision_of, desks.belongs, Subscriptions())
    server = Served(
        uvicorn.Config(
            application(settings, desks, hub),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=HEADERS_MAX,
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
    beside = [
        asyncio.create_task(desks.door.sessions.watch()),
        asyncio.create_task(_show_new_certificates(server.config, settings)),
    ]
    try:
        ready(address_of(settings, listening))
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
        for task in beside:
            task.cancel()
        # Brokers may be gone, or silent, when the console stops: everything that waits for them waits at once.
        await asyncio.gather(desks.close(), *(asyncio.to_thread(sampler.stop) for sampler in samplers.values()))
        await asyncio.to_thread(reading.stop)
        trail.close()


async def _show_new_certificates(config: uvicorn.Config, settings: ConsoleSettings) -> None:
    """Whoever connects from now on is shown what is in the files now. Files that are no use leave what there was."""
    if settings.certfile is None:
        return
    paths = [Path(settings.certfile), *([Path(settings.keyfile)] if settings.keyfile else [])]
    known = await asyncio.to_thread(_stamps, paths)
    while True:
        await asyncio.sleep(CERTIFICATE_EVERY_S)
        now = await asyncio.to_thread(_stamps, paths)
        if now == known or not config.loaded or config.ssl is None:
            continue
        known = now
        try:
            await asyncio.to_thread(_try_certificate, settings.certfile, settings.keyfile)
            config.ssl.load_cert_chain(settings.certfile, settings.keyfile)
        except (OSError, ValueError) as failure:
            log.warning("%s has no certificate to go on with, the one before is shown: %s", settings.certfile, failure)


def _try_certificate(certfile: str, keyfile: str | None) -> None:
    """OSError for files that would leave a context without a certificate that fits its key."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile, password="")


def _stamps(paths: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    """When files were written, and which they are; None for one that is away for the moment."""
    found: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            about = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((about.st_mtime_ns, about.st_size, about.st_ino))
    return found


def _keeper(address: ClusterAddress, settings: ConsoleSettings, past: Past) -> Keeper:
    return Keeper(address, past, read_only=settings.read_only)
