"""Starts a process for a question, feeds it, watches it, ends it: two at once, and one a person."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Final

import msgspec

from penstock.console.failures import Declined, bad_request
from penstock.console.tables.sql.order import BYTES_MAX, SQL_MAX, SqlAnswer, SqlOrder

AT_ONCE: Final = 2
OF_ONE_AT_ONCE: Final = 1
ENVELOPE_BYTES: Final = 1 << 20
"""Beside the cells: names and types of columns."""
CHILD: Final = ("-I", "-m", "penstock.console.tables.sql.child")
_TOO_LONG: Final = (-signal.SIGKILL, -signal.SIGALRM, -signal.SIGXCPU)


class SqlProcesses:
    """All questions that are being answered."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}

    async def ask(self, person: str, order: SqlOrder, *, of_one: int = OF_ONE_AT_ONCE) -> SqlAnswer:
        """Declined when it is refused, takes too long or too much. Whoever stops waiting ends the process."""
        if not order.sql.strip() or len(order.sql) > SQL_MAX:
            raise bad_request(f"query: between 1 and {SQL_MAX} characters of SQL were expected")
        if self._running.get(person, 0) >= of_one:
            raise _busy("a question of yours is still being answered", "cancel it, or wait for it")
        if sum(self._running.values()) >= AT_ONCE:
            raise _busy(f"{AT_ONCE} questions are being answered", "try again in a moment")
        self._running[person] = self._running.get(person, 0) + 1
        try:
            return await _answer_of(order)
        finally:
            self._running[person] -= 1
            if not self._running[person]:
                del self._running[person]


async def _answer_of(order: SqlOrder) -> SqlAnswer:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *CHILD,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(order.seconds):
            body = await _exchange(child, msgspec.json.encode(order))
            code = await child.wait()
    except TimeoutError:
        raise _too_long(order) from None
    finally:
        await _ended(child)
    return _told(order, body, code)


async def _exchange(child: asyncio.subprocess.Process, order: bytes) -> bytes:
    assert child.stdin is not None, "it is a pipe"
    assert child.stdout is not None, "it is a pipe"
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # how it ended says more
        child.stdin.write(order)
        await child.stdin.drain()
        child.stdin.close()
    found = bytearray()
    while part := await child.stdout.read(1 << 18):
        found += part
        if len(found) > BYTES_MAX + ENVELOPE_BYTES:
            raise Declined(400, "too_large", "the names of this answer's columns alone are too long")
    return bytes(found)


async def _ended(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    await asyncio.shield(child.wait())


def _told(order: SqlOrder, body: bytes, code: int) -> SqlAnswer:
    if code in _TOO_LONG:
        raise _too_long(order)
    try:
        told = msgspec.json.decode(body, type=SqlAnswer)
    except msgspec.DecodeError:
        message = (
            f"the process that was to answer has ended; it may have needed more than {order.memory_bytes >> 20} MB"
        )
        raise Declined(400, "sql_refused", message, "ask for less, or in several steps") from None
    if told.refused:
        raise Declined(400, "sql_refused", told.refused)
    return told


def _busy(message: str, attempt: str) -> Declined:
    return Declined(429, "too_many", message, attempt, retry_after_s=1)


def _too_long(order: SqlOrder) -> Declined:
    return Declined(
        400, "sql_timed_out", f"it takes longer than {order.seconds} s", "ask for less, or with `penstock lake query`"
    )
