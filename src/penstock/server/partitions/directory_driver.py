"""Tells the controller how this node's log directories are: which are offline, which take no new replicas.

What changes is reported at once; the heartbeats repeat it, so a report that is refused is not lost. A broker that
cannot report a failed directory for `log.dir.failure.timeout.ms` stops itself, because the controller counts on
replicas that are gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVarTuple

from penstock.model.errors import Refused
from penstock.server.loops.duty import duty

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ids import Uuid
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.directories")

Ts = TypeVarTuple("Ts")


class Reports(Protocol):
    """How this broker tells the controller of its directories."""

    @property
    def registered(self) -> bool: ...
    def has_reported(self, directory_id: Uuid) -> bool:
        """Whether the controller knows that a log directory is offline."""

    async def directory_failed(self, directory_id: Uuid) -> None: ...
    async def cordon(self, directories: Iterable[Uuid]) -> None: ...


class DirectoryDriver:
    """`give_up` is told why when no directory is left, or the loss of one cannot be reported."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: LogStore,
        lifecycle: Reports,
        give_up: Callable[[str], None],
    ) -> None:
        self._settings, self._store, self._lifecycle, self._give_up = settings, store, lifecycle, give_up
        self._reports: set[asyncio.Task[None]] = set()
        self._closed = False

    def online(self) -> list[Uuid]:
        return [each.id for each in self._store.directories if each.online and each.id is not None]

    def lost(self, directory_id: Uuid) -> None:
        """A directory went offline; its replicas have to leave their ISRs."""
        directories = self._store.directories
        if not any(directory.online for directory in directories):
            reasons = "; ".join(f"{directory.path}: {directory.why_offline}" for directory in directories)
            self._give_up(f"every log directory is offline: {reasons}")
        else:
            self._report(self._lifecycle.directory_failed, directory_id)
            timeout_ms = self._settings.number("log.dir.failure.timeout.ms")
            asyncio.get_running_loop().call_later(timeout_ms / 1_000, self._overdue, directory_id, timeout_ms)

    def _overdue(self, directory_id: Uuid, timeout_ms: int) -> None:
        if not self._closed and not self._lifecycle.has_reported(directory_id):
            lost = next(each.path for each in self._store.directories if each.id == directory_id)
            self._give_up(f"the controller could not be told within {timeout_ms} ms that {lost} is offline")

    def close(self) -> None:
        self._closed = True

    def cordoned(self) -> list[Uuid]:
        """Looks which directories the operator wants no new replicas in; the ids of those."""
        paths = {path.rstrip("/") for path in self._settings.cordoned_log_dirs}
        for directory in self._store.directories:
            directory.cordoned = directory.path in paths
        return [each.id for each in self._store.directories if each.cordoned and each.id is not None]

    def cordons_changed(self) -> None:
        """`cordoned.log.dirs` may have changed while the node runs."""
        self._report(self._lifecycle.cordon, self.cordoned())

    def _report(self, report: Callable[[*Ts], Awaitable[None]], *what: *Ts) -> None:
        if not self._lifecycle.registered:
            return  # the registration says it

        async def tell() -> None:
            try:
                await report(*what)
            except Refused as refusal:
                log.warning("the controller did not take a report: %s", refusal)

        task = duty(tell(), name="report on log directories")
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)
