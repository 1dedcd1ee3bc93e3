"""The log of a Postgres as it is written: the messages of a replication connection, over psycopg's door to libpq.

psycopg has no replication of its own, and psycopg2's acknowledges by itself what nobody has saved. Messages are read on
the agent's loop, which is told when there are some, and nothing here waits.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Any, Final, NamedTuple

from penstock.agent.inputs.postgres.log.lsn import lsn_text
from penstock.agent.inputs.postgres.log.wire import EPOCH_US
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed, calling, driver, words_of

_DATA: Final = struct.Struct(">xQQq")
_ALIVE: Final = struct.Struct(">xQqB")
_ACKNOWLEDGED: Final = struct.Struct(">cQQQqB")


class LogMessage(NamedTuple):
    data: bytes
    lsn: int


class LogStream:
    """Of one connection. `start`, then `read` until nothing is there, then `wait`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._wire = connection.pgconn
        self._flushed = 0
        self.sent_up_to = 0
        """The server has sent all that committed before, once everything that is here is read."""
        self._readable = asyncio.Event()
        self._descriptor: int | None = None

    async def start(self, slot: str, publication: str, at: int) -> None:
        names = publication.replace('"', '""').replace("'", "''")
        options = f"proto_version '1', publication_names '\"{names}\"'"
        command = f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(at)} ({options})'
        result = await calling(self._connection, lambda: self._wire.exec_(command.encode()))
        if result.status != driver().pq.ExecStatus.COPY_BOTH:
            raise PostgresFailed(f"the log of slot {slot} is not to be read: {_said(result)}")
        self._wire.nonblocking = 1
        self._descriptor = self._wire.socket
        asyncio.get_running_loop().add_reader(self._descriptor, self._readable.set)

    @property
    def streaming(self) -> bool:
        return self._descriptor is not None

    def read(self) -> LogMessage | None:
        """The next message if it is here."""
        self._readable.clear()
        try:
            return self._read()
        except driver().Error as error:
            raise PostgresFailed(f"the log of Postgres ended: {words_of(error)}") from None

    def _read(self) -> LogMessage | None:
        looked = False
        while True:
            length, data = self._wire.get_copy_data(1)
            if length < 0:
                raise PostgresFailed(f"the log of Postgres ended: {_said(self._wire.get_result())}")
            if not length:
                if looked:
                    return None
                self._wire.consume_input()
                looked = True
            elif data[0] == 0x77:  # w: of the log
                lsn, _, _ = _DATA.unpack_from(data)
                return LogMessage(bytes(data[_DATA.size :]), lsn)
            elif data[0] == 0x6B:  # k: the server is alive, and wants to know perhaps whether we are
                end, _, wants_answer = _ALIVE.unpack_from(data)
                self.sent_up_to = max(self.sent_up_to, end)
                if wants_answer:
                    self.acknowledge(self._flushed)

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
        seen = max(self.sent_up_to, self._flushed)
        now_us = time.time_ns() // 1_000 - EPOCH_US
        try:
            self._wire.put_copy_data(_ACKNOWLEDGED.pack(b"r", seen, self._flushed, self._flushed, now_us, 0))
            self._wire.flush()
        except driver().Error as error:
            raise PostgresFailed(f"the log of Postgres ended: {words_of(error)}") from None

    def close(self) -> None:
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._descriptor = None
        self._connection.close()


def _said(result: Any) -> str:
    """Why the server ended it."""
    message = b"" if result is None else result.error_message
    return " ".join(message.decode(errors="replace").split()) or "without a word"
