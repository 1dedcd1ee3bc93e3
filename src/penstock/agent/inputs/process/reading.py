"""Reading a descriptor that may be a pipe, a terminal or a file, and stopping while nothing comes."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Final

READ_BYTES: Final = 1 << 18


class DescriptorReader:
    """The descriptor stays blocking: it may be shared with the shell that started the agent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pollable = True
        self._stopped = False
        self._ready: asyncio.Future[None] | None = None

    @property
    def stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        """Whoever waits in `read` gets nothing, now and from now on."""
        self._stopped = True
        if self._ready is not None:
            _set(self._ready)

    async def read(self) -> bytes:
        """Some bytes as soon as there are any; none at the end and after `stop`."""
        while not self._stopped:
            if self._pollable:
                await self._wait()
            if self._stopped:
                break
            try:
                if self._pollable:
                    return os.read(self._descriptor, READ_BYTES)
                return await asyncio.to_thread(os.read, self._descriptor, READ_BYTES)
            except BlockingIOError:
                continue
            except OSError as wrong:
                if wrong.errno == errno.EIO:
                    # The terminal has gone.
                    break
                raise
        return b""

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        try:
            loop.add_reader(self._descriptor, _set, self._ready)
        except PermissionError:
            # Files and /dev/null cannot be waited for, and need not be.
            self._pollable, self._ready = False, None
            return
        try:
            await self._ready
        finally:
            self._ready = None
            loop.remove_reader(self._descriptor)


async def process_ended(pid: int) -> None:
    """Returns when the child has ended. It is not reaped, so its process group can still be named without doubt."""
    watching = os.pidfd_open(pid)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(watching, _set, ended)
        try:
            await ended
        finally:
            loop.remove_reader(watching)
    finally:
        os.close(watching)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
