"""A tab's stream as an answer: however it ends, and even when it ends before it has begun, its tab is let go."""

from __future__ import annotations

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from penstock.console.stream.hub import Hub
from penstock.console.stream.tab import BrowserTab


class TabStream(StreamingResponse):
    def __init__(self, hub: Hub, tab: BrowserTab, hello: bytes) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(hub.events(tab, hello), media_type="text/event-stream", headers=headers)
        self._hub, self._tab = hub, tab

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # A generator that nobody has begun to read has no end of its own to clear up at.
            self._hub.forget(self._tab)
