"""The audit stream of one side of a node: events in, lines out, and nobody on a loop waits for the disk.

Whoever is told something puts a line into the bounded queue of each outlet (`outlet.py`): the file, the topic. One
thread writes the file, one batch at a time. What does not fit, what one principal or address causes too much of, and
what cannot be written is dropped and counted: the stream must not hold a node up, and not be a lever to fill its disk.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from penstock.model.errors import NONE, PenstockError, error_of
from penstock.model.ids import AUDIT_TOPIC
from penstock.protocol.registry import APIS
from penstock.protocol.wire import schema_of
from penstock.security.audit import Allowances, Event, Kind, Resource, Result, rule_of
from penstock.server.auditing.changes import changes_of
from penstock.server.auditing.outlet import QUEUE, WRITE, Line, Lost, Outlet
from penstock.server.doors import AUDIT_CLIENT
from penstock.server.logs import Sparing
from penstock.server.loops.threads import CallThreads

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.model.ports import Clock
    from penstock.model.security import Operation, Principal, ResourceType
    from penstock.protocol.wire import Message
    from penstock.security.authorizer import Verdict
    from penstock.server.auditing.file import AuditFile
    from penstock.server.doors import Context

    Explain = Callable[[Principal, str, Operation, ResourceType, str], Verdict]

_log = logging.getLogger("penstock.audit")

TOLD_MAX: Final = 4_096
"""How many things that were allowed are remembered, so that each is told once for a connection."""
LOG_FILE: Final = "penstock.audit.log.file"
ALLOWED: Final = "penstock.audit.allowed"

RATE: Final = "rate"


class BadAuditFile(PenstockError):
    """The file that is asked for cannot be written: a node does not start without what its owner relies on."""


class Audit:
    """Belongs to one loop. `open` before the first event, `close` or `abandon` after the last."""

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        file: AuditFile | None,
        explain: Explain | None = None,
        *,
        tells_allowed: bool = False,
    ) -> None:
        """`explain` gives the rule behind a decision; without it there is no authorizer."""
        self._node_id, self._clock, self._file, self._explain = node_id, clock, file, explain
        self.tells_allowed = tells_allowed
        self._threads = CallThreads(1)
        self._allowances = Allowances()
        self.sparing = Sparing(_log, clock=clock.monotonic_ms)
        self._told: dict[tuple[int, int, int, str], None] = {}
        self._rate_drops = 0
        self.events = dict.fromkeys(Kind, 0)
        self._to_file: Outlet | None = None
        self._outlets: list[Outlet] = []
        if file is not None:
            self._to_file = Outlet(file.path, self._append, self.sparing)
            self._outlets.append(self._to_file)

    def also_to(self, outlet: Outlet) -> None:
        """Lines go there too from now on."""
        self._outlets.append(outlet)

    @property
    def drops(self) -> dict[str, int]:
        """Events that are not in the file, by the bound that they met."""
        written = {QUEUE: 0, WRITE: 0} if self._to_file is None else self._to_file.drops
        return {RATE: self._rate_drops, **written}

    # -- what is told

    def denied(self, ctx: Context, operation: Operation, resource_type: ResourceType, name: str) -> None:
        # A node that may not write audit records would be told of with each of them, without an end.
        of_audit = name == AUDIT_TOPIC and ctx.client_id == AUDIT_CLIENT
        if of_audit and self._was_told(ctx, operation, resource_type, name):
            return
        self._decided(Result.DENIED, ctx, operation, resource_type, name)

    def allowed(self, ctx: Context, operation: Operation, resource_type: ResourceType, name: str) -> None:
        """Once for each thing that a connection does: a producer writes to one topic a thousand times a second."""
        if not self._was_told(ctx, operation, resource_type, name):
            self._decided(Result.ALLOWED, ctx, operation, resource_type, name)

    def _was_told(self, ctx: Context, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether it was asked for over the same connection before."""
        number = 0 if ctx.connection is None else ctx.connection.number
        key = number, int(operation), int(resource_type), name
        if key in self._told:
            return True
        if len(self._told) >= TOLD_MAX:
            del self._told[next(iter(self._told))]
        self._told[key] = None
        return False

    def _decided(
        self, result: Result, ctx: Context, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        who = str(ctx.principal)
        if not self._has_allowance(who):
            return
        verdict = None
        if self._explain is not None:
            verdict = self._explain(ctx.principal, ctx.client_host, operation, resource_type, name)
        rule, acl = rule_of(verdict)
        self._put(
            Event(
                Kind.AUTHORIZATION, result, self._clock.now_ms(), self._node_id,
                who, ctx.client_host, ctx.listener.name, ctx.client_id or "", _api_name(ctx.api_key),
                operation=operation.name, resource=Resource(resource_type.name, name), rule=rule, acl=acl,
            )
        )  # fmt: skip

    def login_failed(
        self, address: str, listener: str, client_id: str | None, mechanism: str, name: str, reason: str
    ) -> None:
        # Names are a stranger's to choose, so addresses have the allowance.
        if self._has_allowance(address):
            self._put(
                Event(
                    Kind.LOGIN, Result.FAILED, self._clock.now_ms(), self._node_id,
                    address=address, listener=listener, client_id=client_id or "",
                    mechanism=mechanism, name=name, reason=reason,
                )
            )  # fmt: skip

    def changed(self, ctx: Context, request: Message, reply: Message | None, error_code: int = NONE.code) -> None:
        """A request that may change things was answered; `error_code` is why there is no reply.

        What came in an envelope is told by the node that its client is connected to.
        """
        if ctx.connection is None:
            return
        who, api = str(ctx.principal), _api_name(schema_of(request.__class__).key)
        for change in changes_of(request, reply, error_code):
            if not self._has_allowance(who):
                continue
            failed = change.error_code != NONE.code
            self._put(
                Event(
                    Kind.CHANGE, Result.REFUSED if failed else Result.DONE, self._clock.now_ms(), self._node_id,
                    who, ctx.client_host, ctx.listener.name, ctx.client_id or "", api,
                    resource=change.resource, details=change.details,
                    error=error_of(change.error_code).name if failed else "",
                )
            )  # fmt: skip

    # -- bounds

    def _has_allowance(self, who: str) -> bool:
        if self._allowances.take(who, self._clock.monotonic_ms()):
            return True
        self._rate_drops += 1
        return False

    def _put(self, event: Event) -> None:
        line = Line(event.at_ms, event.line())
        taken = [outlet.put(line) for outlet in self._outlets]
        if any(taken):
            self.events[event.kind] += 1

    # -- the file

    async def open(self) -> None:
        """Returns when the file is open; BadAuditFile when it cannot be."""
        if self._file is None:
            return
        try:
            await self._threads.call(self._file.open)
        except OSError as cause:
            raise BadAuditFile(f"{LOG_FILE}: {self._file.path} cannot be opened: {cause.strerror}") from cause

    async def _append(self, batch: list[Line]) -> None:
        assert self._file is not None, "what has no file writes none"
        try:
            await self._threads.call(self._file.append, b"".join(line.text for line in batch))
        except OSError as cause:
            raise Lost(cause.strerror) from cause

    async def close(self) -> None:
        """Lets what is queued be written, but waits for no disk that hangs."""
        for outlet in self._outlets:
            await outlet.close()
        self.abandon()

    def abandon(self) -> None:
        """Ends at once. A thread that hangs in the disk is left to the end of the process."""
        for outlet in self._outlets:
            outlet.abandon()
        if self._file is not None and self._to_file is not None and not self._to_file.busy:
            self._threads.close()
            self._file.close()


def _api_name(key: int) -> str:
    api = APIS.get(key)
    return str(key) if api is None else api.name
