"""Whether brokers answer, asked for its own sake: an agent with nothing to send must know it too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.client.cluster_view import ClusterView
from penstock.client.errors import ClientError, link_failure
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.transport.dial_security import DialSecurity

WHEN_UP_S: Final = 2.0
WHEN_DOWN_S: Final = 1.0
ANSWER_WITHIN_MS: Final = 5_000


class Watch:
    """Asks every few seconds on a connection of its own, so that no full pipe delays the answer."""

    def __init__(
        self, bootstrap: str, client_id: str, tell: Callable[[str], None], security: DialSecurity | None = None
    ) -> None:
        self._view = ClusterView(bootstrap, timeout_ms=ANSWER_WITHIN_MS, client_id=client_id, security=security)
        self._tell = tell
        self.reachable = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._view.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._view.metadata([])
                self.reachable = True
            except (LinkError, ClientError) as wrong:
                failure = link_failure(wrong) if isinstance(wrong, LinkError) else wrong
                self.reachable = False
                self._tell(f"no broker answers: {failure}")
            await asyncio.sleep(WHEN_UP_S if self.reachable else WHEN_DOWN_S)
