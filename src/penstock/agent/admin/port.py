"""The admin port of an agent: `/metrics`, `/healthz`, `/readyz` and `/status`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.agent.admin import metrics
from penstock.agent.admin.snapshot import Snapshot
from penstock.agent.admin.verdicts import health, readiness
from penstock.agent.errors import AgentError
from penstock.agent.http import HttpServer, Limits, Request, Response
from penstock.transport.prometheus import MEDIA_TYPE

LIMITS: Final = Limits(body_bytes_max=1 << 10, held_bytes_max=32 << 10, head_bytes_max=8 << 10, connections_max=32)
"""This port shares the loop with everything else: it takes next to nothing in."""


class CannotListen(AgentError):
    """The address of the admin port is taken, or is none of this machine's."""


class AdminPort:
    """`look(details)` gives a picture of the agent; with `details` every file is in it."""

    def __init__(self, look: Callable[[bool], Snapshot]) -> None:
        self._look = look
        self._server = HttpServer(self._handle, LIMITS)
        self.address = ""
        """HOST:PORT once it is open."""

    async def open(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        plain = host.removeprefix("[").removesuffix("]")
        try:
            bound = await self._server.start(plain, int(port))
        except OSError as failure:
            raise CannotListen(f'admin = "{address}": {failure.strerror or failure}') from failure
        self.address = f"{host}:{bound}"

    async def close(self) -> None:
        await self._server.close()

    async def _handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response.refusal(405, "only GET and HEAD", headers=[("allow", "GET, HEAD")])
        files = request.query.get("files", "") in ("1", "true", "yes")
        match request.path:
            case "/metrics":
                return Response(200, metrics.page(self._look(files), files=files).encode(), MEDIA_TYPE)
            case "/healthz":
                return _verdict("healthy", health(self._look(False)))
            case "/readyz":
                return _verdict("ready", readiness(self._look(False)))
            case "/status":
                return Response.json(self._told(self._look(files)))
        return Response.refusal(404, "there are /metrics, /healthz, /readyz and /status")

    @staticmethod
    def _told(snapshot: Snapshot) -> dict[str, Any]:
        return {**snapshot.data(), "reasons": readiness(snapshot)}


def _verdict(word: str, reasons: list[str]) -> Response:
    return Response.json(
        {"status": f"not {word}" if reasons else word, "reasons": reasons}, status=503 if reasons else 200
    )
