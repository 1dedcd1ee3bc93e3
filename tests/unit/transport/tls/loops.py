"""A TLS listener under test on any loop, with a stream behind it that keeps what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from penstock.transport.intake import Intake
from penstock.transport.net import AsyncioNet, Listening
from penstock.transport.tls.failures import TlsFailure
from penstock.transport.tls.stream import HANDSHAKE_TIMEOUT_S, TlsShared, TlsStream, TlsTerms
from tests.patience import until
from tests.unit.transport.pairs import Recorder
from tests.unit.transport.tls.world import server_context

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.new_event_loop,
}


def on_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test to its end on a fresh loop of each kind."""

    @pytest.mark.parametrize("loop_kind", LOOPS)
    @functools.wraps(test)
    def run(loop_kind: str, **named: Any) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop_kind]) as runner:
            runner.run(test(**named))

    # pytest asks the wrapped function for its arguments, which has one more than the test itself.
    import inspect

    own = inspect.signature(test).parameters.values()
    asked = [inspect.Parameter("loop_kind", inspect.Parameter.POSITIONAL_OR_KEYWORD), *own]
    run.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]  # functions may have one
    return run


class Listener:
    """What it accepted, and what it was told."""

    def __init__(self, context: ssl.SSLContext, intake: Intake, timeout_s: float, frame_bytes_max: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.intake = intake
        self.shared = TlsShared(self.loop)
        self.terms = TlsTerms(self.shared, context, self._told, server_side=True, handshake_timeout_s=timeout_s)
        self.frame_bytes_max = frame_bytes_max
        self.accepted: list[TlsStream] = []
        self.streams: list[Recorder] = []
        self.outcomes: list[TlsFailure | None] = []
        self.listening: Listening
        self.prepare: Callable[[Recorder], None] = lambda _stream: None

    @property
    def port(self) -> int:
        return self.listening.port

    @property
    def failures(self) -> list[TlsFailure]:
        return [each for each in self.outcomes if each is not None]

    def accept(self) -> TlsStream:
        self.accepted.append(TlsStream(self.terms, self._make))
        return self.accepted[-1]

    def _make(self) -> Recorder:
        stream = Recorder(self.loop, self.intake, self.frame_bytes_max)
        self.prepare(stream)
        self.streams.append(stream)
        return stream

    def _told(self, _stream: TlsStream, outcome: TlsFailure | None) -> None:
        self.outcomes.append(outcome)


@contextlib.asynccontextmanager
async def listening(
    context: ssl.SSLContext | None = None,
    *,
    budget_bytes: int = -1,
    timeout_s: float = HANDSHAKE_TIMEOUT_S,
    frame_bytes_max: int = 64 << 20,
) -> AsyncIterator[Listener]:
    loop = asyncio.get_running_loop()
    intake = Intake(loop, budget_bytes=budget_bytes)
    listener = Listener(context or server_context(), intake, timeout_s, frame_bytes_max)
    listener.listening = await AsyncioNet(loop).listen("127.0.0.1", 0, listener.accept)
    try:
        yield listener
    finally:
        listener.listening.close()
        for stream in listener.accepted:
            stream.abort()
        await until(lambda: all(stream.gone for stream in listener.streams))
        assert intake.held_bytes == 0
