"""One HTTP connection: h11 says what the bytes mean, this says what happens and how long it may take."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from penstock.agent.http.inflating import ENCODINGS, BadBody, BodyTooLarge, UnknownEncoding, inflate
from penstock.agent.http.messages import Counts, Limits, Request, Response, reason
from penstock.agent.listening.streams import Guest

_log = logging.getLogger(__name__)

Handle = Callable[[Request], Awaitable[Response]]
Admit = Callable[[Request], "Response | None"]

_MAY_ANSWER: Final = (h11.IDLE, h11.SEND_RESPONSE)
_LINGER_S: Final = 2.0
_LINGER_BYTES_MAX: Final = 16 << 20
_CHUNKS_FREE: Final = 1_000
_CHUNK_BYTES_MEAN_MIN: Final = 64
_WRITE_BUFFER_BYTES: Final = 64 << 10


class Stage(enum.Enum):
    IDLE = "waits for a request"
    HEAD = "reads a head"
    BODY = "reads a body"
    ANSWERING = "has a whole request"
    LEAVING = "has answered and reads what still comes, so that the answer is not lost to a reset"


class Host:
    """What connections of one server share."""

    def __init__(self, handle: Handle, limits: Limits, admit: Admit | None) -> None:
        self.handle, self.limits, self.admit = handle, limits, admit
        self.counts = Counts()
        self.answering: set[asyncio.Task[None]] = set()
        self.inflating = asyncio.Semaphore(1)
        self.stopping = False


class HttpConnection(Guest):
    def __init__(self, host: Host) -> None:
        self._host, self._limits = host, host.limits
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=host.limits.head_bytes_max)
        self._stage = Stage.IDLE
        self._request: Request | None = None
        self._parts: list[bytes] = []
        self._body_bytes = 0
        self._chunks = 0
        self._chunked = False
        self._bodiless = False
        self._held_bytes = 0
        self._began_s = 0.0
        self._due_s = 0.0
        self._timer: asyncio.Handle | None = None
        self._fires_s = 0.0
        """When the timer fires. The loop's own handle does not always know: uvloop's has no `when` if it is due."""
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._writable.set()

    # What the transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        # A fresh connection is here to ask: it gets no longer than a head may take.
        self._due(self._limits.head_timeout_s)

    def connection_lost(self, cause: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._stage is not Stage.ANSWERING:
            self._release()
        self._writable.set()
        super().connection_lost(cause)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._stage is Stage.LEAVING:
            self._body_bytes += len(data)
            if self._body_bytes > _LINGER_BYTES_MAX:
                self._abort()
            return
        if self._stage is Stage.IDLE:
            self._stage = Stage.HEAD
            self._due(self._limits.head_timeout_s)
        self._h11.receive_data(data)
        self._advance()

    def eof_received(self) -> bool:
        if self._stage is Stage.LEAVING:
            return False
        self._h11.receive_data(b"")
        self._advance()
        # Some shut their side down after the request and still want the answer.
        return self._answering

    def end(self) -> None:
        if self._stage is not Stage.ANSWERING and self.transport is not None:
            self.transport.close()

    # What a request goes through.

    def _advance(self) -> None:
        """Takes events until more bytes are needed or a request is whole."""
        try:
            while self._stage in (Stage.HEAD, Stage.BODY):
                event = self._h11.next_event()
                if event is h11.NEED_DATA:
                    if self._stage is Stage.BODY and self._h11.they_are_waiting_for_100_continue:
                        self._write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])))
                    return
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._take(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self._complete()
                else:
                    self._close()
                    return
        except h11.RemoteProtocolError as wrong:
            self._host.counts.protocol_errors += 1
            status = wrong.error_status_hint or 400
            words = f"headers are larger than {self._limits.head_bytes_max} bytes" if status == 431 else str(wrong)
            self._refuse(status, f"this is not HTTP as it should be: {words}")

    def _begin(self, head: h11.Request) -> None:
        if sum(len(name) + len(value) for name, value in head.headers) + len(head.target) > self._limits.head_bytes_max:
            # h11 looks only at what is incomplete: a head that comes at once passes it at any size.
            self._refuse(431, f"headers are larger than {self._limits.head_bytes_max} bytes")
            return
        headers: dict[str, str] = {}
        for name, value in head.headers:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        try:
            target = urlsplit(head.target.decode("latin-1"))
            query = dict(parse_qsl(target.query, keep_blank_values=True, max_num_fields=100))
        except ValueError as wrong:
            self._refuse(400, f"the target is not understood: {wrong}")
            return
        self._request = Request(head.method.decode("latin-1"), unquote(target.path), query, headers, self.peer)
        self._stage, self._bodiless = Stage.BODY, self._request.method == "HEAD"
        self._began_s, self._chunks, self._chunked = self._loop.time(), 0, "transfer-encoding" in headers
        self._due(self._limits.body_grace_s)
        refused = self._host.admit(self._request) if self._host.admit is not None else None
        if refused is not None:
            self._send(refused)
        elif int(headers.get("content-length", 0)) > self._limits.body_bytes_max:
            self._refuse(413, f"bodies may have {self._limits.body_bytes_max} bytes; send less at a time")

    def _take(self, data: bytes) -> None:
        self._chunks += 1
        self._body_bytes += len(data)
        self._held_bytes += len(data)
        self._host.counts.held_bytes += len(data)
        self._parts.append(data)
        if self._body_bytes > self._limits.body_bytes_max:
            self._refuse(413, f"bodies may have {self._limits.body_bytes_max} bytes; send less at a time")
        elif self._host.counts.held_bytes > self._limits.held_bytes_max:
            self._send(_too_many())
        elif self._chunked and self._chunks > _CHUNKS_FREE + self._body_bytes // _CHUNK_BYTES_MEAN_MIN:
            # Tiny chunks cost a hundred times what they carry.
            self._refuse(400, f"chunks are too small: send {_CHUNK_BYTES_MEAN_MIN} bytes or more in each")

    def _complete(self) -> None:
        assert self._request is not None
        assert self.transport is not None
        request, self._request = self._request, None
        request.body, self._parts = b"".join(self._parts), []
        request._release = self._release
        self._stage = Stage.ANSWERING
        self._host.counts.requests += 1
        self.transport.pause_reading()
        task = asyncio.create_task(self._answer(request))
        self._host.answering.add(task)
        task.add_done_callback(self._host.answering.discard)

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._inflate(request) or await self._host.handle(request)
        except asyncio.CancelledError:
            self._abort()
            raise
        except Exception as wrong:
            self._host.counts.failures += 1
            self._host.counts.last_error = f"{request.method} {request.path}: {wrong!r}"
            _log.error("%s %s failed", request.method, request.path, exc_info=wrong)
            response = Response.refusal(500, "something went wrong here; the agent's log says what")
        finally:
            request.let_go()
        self._send(response)
        await self._writable.wait()
        self._next()

    async def _inflate(self, request: Request) -> Response | None:
        encoding = request.headers.get("content-encoding", "")
        if not encoding:
            return None
        try:
            # Small ones may be bombs too. One after the other, because none is charged before it is inflated.
            async with self._host.inflating:
                plain = await asyncio.to_thread(inflate, request.body, encoding, self._limits.body_bytes_max)
        except BodyTooLarge as wrong:
            return Response.refusal(413, str(wrong))
        except BadBody as wrong:
            return Response.refusal(400, str(wrong))
        except UnknownEncoding as wrong:
            return Response.refusal(415, str(wrong), (("accept-encoding", ", ".join(ENCODINGS)),))
        grown = len(plain) - len(request.body)
        self._held_bytes += grown
        self._host.counts.held_bytes += grown
        request.body = plain
        if self._host.counts.held_bytes > self._limits.held_bytes_max:
            return _too_many()
        return None

    def _next(self) -> None:
        """The answer is on its way and the peer reads: on with what it sent meanwhile, or wait for more."""
        if self._stage is not Stage.ANSWERING or self.transport is None or self.transport.is_closing():
            return
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            self._close()
            return
        self._h11.start_next_cycle()
        self._body_bytes, self._bodiless = 0, False
        more, closed = self._h11.trailing_data
        self._stage = Stage.HEAD if more or closed else Stage.IDLE
        self._due(self._limits.head_timeout_s if more else self._limits.idle_timeout_s)
        self.transport.resume_reading()
        self._advance()

    # Answers.

    def _refuse(self, status: int, words: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self._send(Response.refusal(status, words, headers, close=True))

    def _send(self, response: Response) -> None:
        if self.transport is None or self.transport.is_closing() or self._h11.our_state not in _MAY_ANSWER:
            return
        counts = self._host.counts.by_status
        counts[response.status] = counts.get(response.status, 0) + 1
        unread = self._stage is not Stage.ANSWERING
        closes = response.close or unread or self._host.stopping
        headers = [
            ("date", formatdate(usegmt=True)),
            ("content-type", response.content_type),
            ("content-length", str(len(response.body))),
            *response.headers,
            *([("connection", "close")] if closes else []),
        ]
        sent = self._h11.send(
            h11.Response(status_code=response.status, headers=headers, reason=reason(response.status))
        )
        assert sent is not None
        self._write(sent if self._bodiless else sent + response.body)
        if not self._bodiless:
            self._h11.send(h11.Data(data=response.body))
        self._h11.send(h11.EndOfMessage())
        self._due(self._limits.idle_timeout_s)
        if unread:
            self._leave()

    def _leave(self) -> None:
        """Closing over unread bytes would reset the connection and take the answer with it."""
        self._release()
        self._parts, self._request = [], None
        self._stage, self._body_bytes = Stage.LEAVING, 0
        self._due(_LINGER_S)
        if self.transport is not None and self.transport.can_write_eof():
            self.transport.write_eof()

    # Small things.

    @property
    def _answering(self) -> bool:
        return self._stage is Stage.ANSWERING

    def _release(self) -> None:
        self._host.counts.held_bytes -= self._held_bytes
        self._held_bytes = 0

    def _write(self, data: bytes | None) -> None:
        if data and self.transport is not None:
            self.transport.write(data)

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _due(self, in_s: float) -> None:
        """Moves the one deadline. The timer looks at it when it fires, so moving it later costs nothing."""
        self._due_s = self._loop.time() + in_s
        if self._timer is None or self._fires_s > self._due_s:
            if self._timer is not None:
                self._timer.cancel()
            self._set_timer(self._due_s)

    def _set_timer(self, at_s: float) -> None:
        self._fires_s = at_s
        self._timer = self._loop.call_at(at_s, self._look)

    def _look(self) -> None:
        self._timer = None
        due_s = self._due_s
        if self._stage is Stage.BODY:
            due_s = self._began_s + self._limits.body_grace_s + self._body_bytes / self._limits.body_bytes_per_s_min
        if self._loop.time() < due_s:
            self._set_timer(due_s)
        elif self._stage in (Stage.HEAD, Stage.BODY):
            self._host.counts.timeouts += 1
            self._refuse(408, "the request came too slowly")
        elif self._stage is Stage.ANSWERING and self._writable.is_set():
            # A handler may take its time; only a peer that does not read its answer is due.
            self._due(self._limits.idle_timeout_s)
        else:
            self._abort()


def _too_many() -> Response:
    return Response.refusal(503, "too many bodies at once; come again", (("retry-after", "1"),), close=True)
