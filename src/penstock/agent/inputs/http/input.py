"""The HTTP input: who may send what, and what is answered."""

from __future__ import annotations

import asyncio
import hmac
import logging
from dataclasses import replace
from typing import Final, cast

from penstock.agent.environment import Environment
from penstock.agent.http import HttpServer, Limits, Request, Response
from penstock.agent.inputs.http.bodies import BodyFormat, Events, Refused, format_of, read_body
from penstock.agent.inputs.http.settings import HttpSettings
from penstock.agent.inputs.input import Channel, InputStatus
from penstock.agent.inputs.streams import STOP_WITHIN_S
from penstock.agent.listening.addresses import Address
from penstock.agent.listening.streams import tls_context
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, TRUNCATED, Portion
from penstock.declared.amounts import size_text

_log = logging.getLogger(__name__)

HEALTH: Final = "/health"
_READ_ON_THE_LOOP_BYTES: Final = 64 << 10
_FIELDS_OVERHEAD_BYTES: Final = 600


class HttpInput:
    """`addresses` are those it listens on, with their real ports, once it runs."""

    def __init__(self, settings: HttpSettings, channel: Channel, env: Environment) -> None:
        self._settings, self._channel = settings, channel
        self._status = InputStatus("http", "starting")
        body_bytes_max = min(settings.body_bytes_max, env.bounded_memory_bytes // 4)
        if body_bytes_max < settings.body_bytes_max:
            _log.warning(
                "input %s: bodies may have %s, a quarter of output.memory; raise that for body_bytes_max = %s",
                *(env.input, size_text(body_bytes_max), size_text(settings.body_bytes_max)),
            )
        self._server = HttpServer(
            self._handle,
            Limits(
                body_bytes_max=body_bytes_max,
                held_bytes_max=env.bounded_memory_bytes // 2,
                connections_max=settings.connections_max,
                idle_timeout_s=settings.idle_timeout_ms / 1000,
            ),
            admit=self._admit,
        )
        self._token = settings.token.encode() if settings.token is not None else None
        self._below = settings.path.rstrip("/") + "/"
        self._retry_after = (("retry-after", str(max(1, -(-settings.retry_after_ms // 1000)))),)
        self._reading = asyncio.Semaphore(1)
        """Large bodies are read one after the other: while they are read they cost several times their size."""
        self._stopped = asyncio.Event()
        self._unanswered: set[asyncio.Future[None]] = set()
        self._putting: set[asyncio.Task[None]] = set()
        self._portion_bytes_max = max(env.bounded_memory_bytes // 8, 1 << 20)
        self.addresses: list[Address] = []

    async def run(self) -> None:
        try:
            tls = tls_context(self._settings.tls) if self._settings.tls is not None else None
            for address in self._settings.listen:
                port = await self._server.start(address.host, address.port, tls)
                self.addresses.append(replace(address, scheme="https" if tls else "http", port=port))
        except BaseException:
            await self._server.close()
            raise
        self._status.words = f"listening on {', '.join(map(str, self.addresses))}"
        await self._stopped.wait()

    async def stop(self) -> None:
        """From here on everybody is told to come again; who waits for an acknowledgement may still get it."""
        self._stopped.set()
        self._status.words = "stopping"
        if self._putting:
            await asyncio.wait(set(self._putting), timeout=STOP_WITHIN_S)
            for putting in set(self._putting):
                putting.cancel()

    async def close(self) -> None:
        """Who still waits is told to send again."""
        self._stopped.set()
        for waiting in self._unanswered:
            if not waiting.done():
                waiting.cancel()
        await self._server.close()
        self._status.words = "stopped"

    def status(self, *, details: bool = False) -> InputStatus:
        counts = self._server.counts
        status = self._status
        status.connections = self._server.connections
        status.refused = self._server.refused + counts.by_status.get(429, 0) + counts.by_status.get(503, 0)
        status.malformed = counts.by_status.get(400, 0) + counts.by_status.get(431, 0)
        status.errors, status.last_error = counts.failures + self._server.failed_handshakes, counts.last_error
        return status

    @property
    def held_bytes(self) -> int:
        """Of bodies that are being received or read."""
        return self._server.counts.held_bytes

    def _admit(self, request: Request) -> Response | None:
        """Looks at the head alone, so that what is refused costs no more than that."""
        if request.path == HEALTH and request.method in ("GET", "HEAD"):
            return None
        if self._stopped.is_set():
            return self._come_again(503, "the agent is stopping; send it again")
        if self._token is not None and not self._knows_token(request):
            words = "a token is needed: authorization: Bearer …"
            return Response.refusal(401, words, (("www-authenticate", "Bearer"),), close=True)
        if request.path + "/" != self._below and not request.path.startswith(self._below):
            return Response.refusal(404, f"events are taken at {self._settings.path}", close=True)
        if request.method not in ("POST", "PUT"):
            return Response.refusal(405, "events are sent with POST", (("allow", "POST, PUT"),), close=True)
        if self._format(request) is None:
            return Response.refusal(
                415,
                f"content-type {request.headers.get('content-type', '')!r} is not known: send application/json,"
                " application/x-ndjson, text/plain (lines) or application/octet-stream (one event)",
                close=True,
            )
        if not self._channel.roomy:
            return self._come_again(429, "there is no room now")
        return None

    async def _handle(self, request: Request) -> Response:
        if request.path == HEALTH and request.method in ("GET", "HEAD"):
            return self._health()
        if self._stopped.is_set():
            return self._come_again(503, "the agent is stopping; send it again")
        try:
            events = await self._read(request)
        except Refused as refused:
            return Response.refusal(refused.status, str(refused))
        count = len(events.values)
        if not count:
            return Response.json({"accepted": 0})
        if self._stopped.is_set():
            return self._come_again(503, "the agent is stopping; send it again")
        first, *rest = self._compose(events, request.peer)
        receipt = Receipt(1 + len(rest))
        if not self._channel.offer(first, receipt.one_is_safe):
            return self._come_again(429, "there is no room now")
        self._count(first)
        del events, first
        request.let_go()
        if rest and not await self._put_rest(rest, receipt):
            return self._come_again(503, "there was no room for all of it; send it again, some may arrive twice")
        if self._settings.answer_when == "taken":
            return Response.json({"accepted": count}, 202)
        return await self._answer(receipt.safe, count)

    async def _put_rest(self, portions: list[Portion], receipt: Receipt) -> bool:
        """A request that is too large for one portion has begun: the rest of it waits for room, but not for ever."""

        async def put() -> None:
            for portion in portions:
                await self._channel.put(portion, receipt.one_is_safe)
                self._count(portion)

        putting = asyncio.create_task(put())
        self._putting.add(putting)
        putting.add_done_callback(self._putting.discard)
        await asyncio.wait((putting,), timeout=self._settings.answer_within_ms / 1000)
        if not putting.done():
            putting.cancel()
            await asyncio.wait((putting,))
        return not putting.cancelled() and putting.exception() is None

    async def _answer(self, safe: asyncio.Future[None], count: int) -> Response:
        self._unanswered.add(safe)
        try:
            await asyncio.wait((safe,), timeout=self._settings.answer_within_ms / 1000)
        finally:
            self._unanswered.discard(safe)
        if safe.cancelled():
            return self._come_again(503, "the agent stopped before it was acknowledged; send it again")
        if not safe.done():
            return self._come_again(503, "not acknowledged in time; send it again, it may arrive twice")
        return Response.json({"accepted": count})

    async def _read(self, request: Request) -> Events:
        format = self._format(request)
        assert format is not None, "admitted"
        limit = self._settings.line_bytes_max
        if len(request.body) <= _READ_ON_THE_LOOP_BYTES:
            return read_body(request.body, format, limit)
        async with self._reading:
            return await asyncio.to_thread(read_body, request.body, format, limit)

    def _compose(self, events: Events, peer: str) -> list[Portion]:
        """Mostly one portion. What would fill much of the memory is divided: as a whole it might never find room."""
        count = len(events.values)
        overhead_bytes = EVENT_OVERHEAD_BYTES + (_FIELDS_OVERHEAD_BYTES if events.fields is not None else 0)
        copies = 1 if events.fields is None else 2
        size_bytes = copies * sum(map(len, events.values)) + overhead_bytes * count
        step = max(1, count * self._portion_bytes_max // size_bytes)
        origin = self._channel.origin(peer=peer)
        return [
            Portion(
                origin,
                values := events.values[at : at + step],
                fields=None if events.fields is None else events.fields[at : at + step],
                marks={index - at: TRUNCATED for index in events.cut if at <= index < at + step},
                size_bytes=copies * sum(map(len, values)) + overhead_bytes * len(values),
            )
            for at in range(0, count, step)
        ]

    def _count(self, portion: Portion) -> None:
        self._status.events += len(portion.values)
        self._status.bytes += sum(map(len, portion.values))
        self._status.truncated += len(portion.marks)

    def _format(self, request: Request) -> BodyFormat | None:
        if self._settings.format == "auto":
            return format_of(request.headers.get("content-type", ""))
        return cast(BodyFormat, self._settings.format)

    def _knows_token(self, request: Request) -> bool:
        assert self._token is not None
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # In constant time, so that the answer's delay does not tell how much of it was right.
        return hmac.compare_digest(given.strip().encode(), self._token) and scheme.lower() == "bearer"

    def _health(self) -> Response:
        """For load balancers: whether it makes sense to send here now."""
        if self._stopped.is_set():
            return Response.json({"status": "stopping"}, 503)
        if not self._channel.roomy:
            return Response.json({"status": "no room"}, 503, self._retry_after)
        return Response.json({"status": "ok"})

    def _come_again(self, status: int, words: str) -> Response:
        return Response.refusal(status, words, self._retry_after)


class Receipt:
    """`safe` is done when every portion of a request is."""

    def __init__(self, portions: int) -> None:
        self._left = portions
        self.safe: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def one_is_safe(self) -> None:
        self._left -= 1
        if not self._left and not self.safe.done():
            self.safe.set_result(None)
