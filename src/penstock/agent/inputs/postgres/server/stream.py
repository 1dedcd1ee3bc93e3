"""The log of a Postgres as it is written. Messages are read on the agent's loop, which is told when there are some."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from penstock.agent.inputs.postgres.log.lsn import lsn_text
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed, calling, driver, words_of


class LogMessage(NamedTuple):
    data: bytes
    lsn: int


class LogStream:
    """Of one connection. `start`, then `read` until nothing is there, then `wait`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._flushed = 0
        self._readable = asyncio.Event()
        self._descriptor: int | None = None

    async def start(self, slot: str, publication: str, at: int) -> None:
        def begin() -> None:
            self._cursor.start_replication(
                slot_name=slot,
                slot_type=driver().extras.REPLICATION_LOGICAL,
                start_lsn=lsn_text(at),
                options={"proto_version": "1", "publication_names": '"' + publication.replace('"', '""') + '"'},
                decode=False,
            )

        await calling(self._connection, begin)
        self._descriptor = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._descriptor, self._readable.set)

    @property
    def streaming(self) -> bool:
        return self._descriptor is not None

    def read(self) -> LogMessage | None:
        """The next message if it is here."""
        self._readable.clear()
        try:
            message = self._cursor.read_message()
        except driver().Error as error:
            raise PostgresFailed(f"the log of Postgres ended: {words_of(error)}") from None
        return None if message is None else LogMessage(message.payload, message.data_start)

    @property
    def sent_up_to(self) -> int:
        """The server has sent all that committed before, once everything that is here is read."""
        return int(self._cursor.wal_end)

    async def wait(self, within_s: float) -> None:
        """Until there is something to read, or for so long."""
        try:
            async with asyncio.timeout(within_s):
                await self._readable.wait()
        except TimeoutError:
            return

    def acknowledge(self, flushed: int) -> None:
        """The server may forget its log up to here. Said now and then although nothing is new: it shows life."""
        self._flushed = max(self._flushed, flushed)
        try:
            self._cursor.send_feedback(flush_lsn=self._flushed, force=True)
        except driver().Error as error:
            raise PostgresFailed(f"the log of Postgres ended: {words_of(error)}") from None

    def close(self) -> None:
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._descriptor = None
        self._connection.close()
