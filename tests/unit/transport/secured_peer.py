"""A peer that wants TLS, a login or both, answers by hand, and keeps what it heard."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.protocol.codec import decode
from penstock.protocol.frame import encode_response_parts, read_request_header
from penstock.protocol.messages.api_versions import ApiVersionsResponse
from penstock.protocol.messages.heartbeat import HeartbeatResponse
from penstock.protocol.registry import APIS
from penstock.security.exchange import ServerExchange
from penstock.security.plain import PlainServer, PlainUsers
from penstock.security.sasl_server import (
    Close,
    Fail,
    Frame,
    Limits,
    Mechanisms,
    Moment,
    Reply,
    SaslServer,
    Serve,
    TellVersions,
)
from penstock.security.scram.keys import BY_NAME
from penstock.transport.intake import Intake
from penstock.transport.net import AsyncioNet
from penstock.transport.tls.stream import TlsShared, TlsStream, TlsTerms
from tests.patience import until
from tests.unit.security.scram.exchanges import Known
from tests.unit.security.scram.exchanges import server as scram_server
from tests.unit.transport.pairs import Recorder

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, HEARTBEAT = 18, 17, 36, 12
SERVED = ((API_VERSIONS, 0, 4), (SASL_HANDSHAKE, 0, 1), (SASL_AUTHENTICATE, 0, 2), (HEARTBEAT, 0, 4))
PASSWORD = "p4ss wörd"


@dataclass
class Peer:
    """What a listener wants, and what it saw. `password` may be changed while it runs."""

    port: int = 0
    password: str = PASSWORD
    max_reauth_ms: int = 0
    mechanisms: tuple[str, ...] = ("PLAIN", *BY_NAME)
    iterations: int = 4_096
    heard: list[int] = field(default_factory=list)
    """Keys of requests, in their order."""
    held: list[tuple[Recorder, int, int]] = field(default_factory=list)
    holds: bool = False
    """Whether heartbeats wait in `held`."""
    streams: list[Recorder] = field(default_factory=list)

    def sasl(self) -> SaslServer:
        limits = Limits(failure_delay_ms=1)
        begin = {name: self._beginning(name) for name in self.mechanisms}
        return SaslServer(Mechanisms(begin, dict.fromkeys(self.mechanisms, self.max_reauth_ms)), limits)

    def _beginning(self, name: str) -> Any:
        def begin() -> ServerExchange:
            if name == "PLAIN":
                return PlainServer(PlainUsers({"alice": Secret(self.password)}))
            known = Known()
            known.add(BY_NAME[name], "alice", self.password, iterations=self.iterations)
            return scram_server(BY_NAME[name], known)

        return begin

    def answer(self, stream: Recorder, frame: bytearray, sasl: SaslServer | None) -> None:
        header, at = read_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        self.heard.append(key)
        if sasl is None:
            self._serve(stream, key, header.correlation_id, version)
            return
        body = (
            decode(APIS[key].request(), version, frame, at)[0] if key in (SASL_HANDSHAKE, SASL_AUTHENTICATE) else None
        )
        now = Moment(Millis(1_700_000_000_000), asyncio.get_running_loop().time() * 1_000)
        for effect in sasl.heard(Frame(key, version, body=body), now):
            match effect:
                case Serve() | TellVersions():
                    self._serve(stream, key, header.correlation_id, version)
                case Reply(message):
                    stream.send(encode_response_parts(header.correlation_id, message, key, version))
                case Fail(reply=reply):
                    stream.send(encode_response_parts(header.correlation_id, reply, key, version))
                    stream.close()
                case Close():
                    stream.close()

    def _serve(self, stream: Recorder, key: int, correlation_id: int, version: int) -> None:
        if key == API_VERSIONS:
            keys = [
                ApiVersionsResponse.ApiVersion(api_key=each, min_version=low, max_version=high)
                for each, low, high in SERVED
            ]
            stream.send(encode_response_parts(correlation_id, ApiVersionsResponse(api_keys=keys), key, version))
        elif self.holds:
            self.held.append((stream, correlation_id, version))
        else:
            heartbeat(stream, correlation_id, version)

    def release(self) -> None:
        self.holds = False
        held, self.held = self.held, []
        for stream, correlation_id, version in held:
            heartbeat(stream, correlation_id, version)


def heartbeat(stream: Recorder, correlation_id: int, version: int) -> None:
    stream.send(encode_response_parts(correlation_id, HeartbeatResponse(), HEARTBEAT, version))


@contextlib.asynccontextmanager
async def listening(
    context: ssl.SSLContext | None = None, *, login: bool = True, host: str = "127.0.0.1", **wishes: Any
) -> AsyncIterator[Peer]:
    """With TLS if there is a context, with SASL if `login`."""
    loop = asyncio.get_running_loop()
    peer, intake = Peer(**wishes), Intake(loop)
    tls: list[TlsStream] = []

    def make() -> Recorder:
        stream = Recorder(loop, intake, 1 << 20)
        sasl = peer.sasl() if login else None

        def finishes(stream: Recorder, frame: bytearray) -> bool:
            peer.answer(stream, frame, sasl)
            return True

        stream.finishes = finishes
        peer.streams.append(stream)
        return stream

    def accept() -> Any:
        if context is None:
            return make()
        terms = TlsTerms(TlsShared(loop), context, lambda *_: None, server_side=True)
        tls.append(TlsStream(terms, make))
        return tls[-1]

    bound = await AsyncioNet(loop).listen(host, 0, accept)
    peer.port = bound.port
    try:
        yield peer
    finally:
        bound.close()
        for stream in (*tls, *peer.streams):
            stream.abort()
        await until(lambda: all(stream.gone for stream in peer.streams))
