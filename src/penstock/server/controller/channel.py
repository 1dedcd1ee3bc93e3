"""This node's way to the active controller, wherever it is: a plain call in this process, or a link to another node.

A broker asks all its life: it registers, reports, asks for ISR changes and producer ids. Meanwhile the controller may
fail over. So whoever asks says how long it is worth waiting, and the channel finds the controller again as often as
needed: an unknown leader, a dead link and NOT_CONTROLLER are tried again after a growing pause that a change of leader
cuts short, and an attempt at a leader that was replaced is given up at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import NOT_CONTROLLER, REQUEST_TIMED_OUT, Refused
from penstock.protocol.wire import Message
from penstock.transport.dial import LinkError, Unsupported

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.server.peers import Address, Peers

log = logging.getLogger("penstock.channel")

PAUSE_FIRST_MS: Final = 20.0
PAUSE_MAX_MS: Final = 500.0
PURPOSE: Final = "controller"

Here = Callable[[], Awaitable[Message]]
"""Asks the controller of this process; raises Refused(NOT_CONTROLLER) when it is not the active one."""
There = Callable[["Address", float], Awaitable[Message]]
"""Asks the controller at an address, within so many milliseconds."""
Ask = Callable[[Message, int], Awaitable[Message]]
"""Asks the active controller, wherever it is, in a version of the request."""


class QuorumView(Protocol):
    """What has to be known of the quorum to find its leader."""

    @property
    def leading(self) -> bool: ...
    @property
    def leader_address(self) -> Address | None: ...
    def when_leader_changes(self, listener: Callable[[], None]) -> None: ...


class OwnController(Protocol):
    """The controller of this process."""

    def submit_own(self, request: Message, api_version: int) -> Awaitable[Message]: ...


class ControllerChannel:
    """Finds the active controller and asks it. One per node; any number may ask at once."""

    def __init__(
        self,
        quorum: QuorumView,
        controller: OwnController | None,
        peers: Peers,
        clock: Clock,
        *,
        request_timeout_ms: float,
        answer_timeout_ms: float = float("inf"),
    ) -> None:
        """`controller` is None on a node without that role. `answer_timeout_ms` bounds a single attempt."""
        self._quorum, self._controller, self._peers, self._clock = quorum, controller, peers, clock
        self._request_timeout_ms, self._answer_timeout_ms = request_timeout_ms, answer_timeout_ms
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._closed = False
        quorum.when_leader_changes(self._leader_changed)

    async def ask(
        self, request: Message, version: int, *, timeout_ms: float | None = None, purpose: str = PURPOSE
    ) -> Message:
        """The active controller's reply; Refused(REQUEST_TIMED_OUT) when none comes within `timeout_ms`."""
        controller = self._controller

        async def here() -> Message:
            if controller is None:
                raise Refused(NOT_CONTROLLER, "this node is no controller")
            return await controller.submit_own(request, version)

        def there(to: Address, left_ms: float) -> Awaitable[Message]:
            return self._peers.ask(to, request, version, purpose=purpose, timeout_ms=left_ms)

        return await self.find(here, there, timeout_ms)

    async def find(self, here: Here, there: There, timeout_ms: float | None = None) -> Message:
        """What `here` or `there` gives, whichever reaches the active controller. `timeout_ms` bounds it all."""
        allowed_ms = self._request_timeout_ms if timeout_ms is None else min(timeout_ms, self._request_timeout_ms)
        deadline = self._clock.monotonic_ms() + allowed_ms
        pause_ms, why = PAUSE_FIRST_MS, "no controller is known"
        while (left_ms := deadline - self._clock.monotonic_ms()) > 0 and not self._closed:
            leader = self._quorum.leader_address
            reply: Message | None = None
            try:
                if self._quorum.leading:
                    async with asyncio.timeout(left_ms / 1_000):
                        reply = await here()
                elif leader is not None:
                    reply = await self._unless_replaced(there(leader, min(left_ms, self._answer_timeout_ms)), leader)
                if reply is not None:
                    if not says_not_controller(reply):
                        return reply
                    why = "the node that was asked is not the active controller"
            except Unsupported as refusal:
                raise Refused(REQUEST_TIMED_OUT, f"the controller does not know this request: {refusal}") from refusal
            except TimeoutError:
                why = "the controller of this node did not answer"
            except LinkError as broken:
                why = str(broken)
            except Refused as refusal:
                if refusal.error is not NOT_CONTROLLER:
                    raise
                why = refusal.why
            if await self._pause(min(pause_ms, deadline - self._clock.monotonic_ms())):
                pause_ms = PAUSE_FIRST_MS
            else:
                pause_ms = min(pause_ms * 2, PAUSE_MAX_MS)
        if self._closed:
            raise Refused(REQUEST_TIMED_OUT, "this node is stopping")
        raise Refused(REQUEST_TIMED_OUT, f"the active controller did not answer within {allowed_ms:.0f} ms: {why}")

    def close(self) -> None:
        """Looks for no controller any more; those who wait are told so."""
        self._closed = True
        self._leader_changed()

    async def _unless_replaced(self, asking: Awaitable[Message], leader: Address) -> Message | None:
        """The reply, or None when another leader was found first: one that is paused or cut off never answers."""
        asked = asyncio.ensure_future(asking)
        try:
            while not asked.done():
                changed = self._next_change()
                try:
                    await asyncio.wait((asked, changed), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._forget(changed)
                if not asked.done() and (self._closed or self._quorum.leader_address not in (None, leader)):
                    return None
            return asked.result()
        finally:
            if not asked.done():
                asked.cancel()
            elif not asked.cancelled():
                asked.exception()  # whoever was cancelled while it failed asks for no result

    async def _pause(self, ms: float) -> bool:
        """Waits, at most until the leader changes; whether it did."""
        if ms <= 0:
            return False
        changed = self._next_change()
        try:
            done, _ = await asyncio.wait((changed,), timeout=ms / 1_000)
            return bool(done)
        finally:
            self._forget(changed)

    def _next_change(self) -> asyncio.Future[None]:
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[changed] = None
        return changed

    def _forget(self, changed: asyncio.Future[None]) -> None:
        self._waiting.pop(changed, None)
        changed.cancel()

    def _leader_changed(self) -> None:
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)


def says_not_controller(reply: Message) -> bool:
    """Whether a reply says that the node asked is not the active controller, for the whole or for one topic of it."""
    if getattr(reply, "error_code", 0) == NOT_CONTROLLER.code:
        return True
    return any(getattr(each, "error_code", 0) == NOT_CONTROLLER.code for each in getattr(reply, "topics", ()))
