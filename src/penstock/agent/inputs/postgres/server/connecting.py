"""Logins to a Postgres. Calls block, so they are made in threads; one that is given up is cancelled at the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from penstock.agent.errors import AgentError
from penstock.agent.inputs.postgres.records.values import SESSION
from penstock.agent.inputs.postgres.secrets import WrongSecret, resolved
from penstock.agent.inputs.postgres.settings import PostgresSettings

CONNECT_WITHIN_S: Final = 8
"""Less than an input may take to stop."""
PATIENT: Final = {
    "connect_timeout": CONNECT_WITHIN_S,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}
"""A server that is gone without a word is noticed within a minute. What the dsn says of these comes before it."""

Result = TypeVar("Result")


class PostgresFailed(AgentError):
    """The server cannot be reached, refuses, or is not as it must be. The input is started again after a while."""


def driver() -> Any:
    """psycopg, which an extra brings."""
    try:
        import psycopg
    except ImportError:
        raise PostgresFailed("a postgres input needs psycopg: install penstock with the extra postgres") from None
    return psycopg


def words_of(error: BaseException) -> str:
    """An error of the server or its library on one line."""
    diagnostics = getattr(error, "diag", None)
    primary = getattr(diagnostics, "message_primary", None)
    hint = getattr(diagnostics, "message_hint", None)
    said = primary or " ".join(str(error).split()) or type(error).__name__
    return f"{said} ({hint})" if hint else said


def connect(settings: PostgresSettings, *, log: bool = False) -> Any:
    """A connection for statements, each of which is a transaction of its own, or for the log. Blocks."""
    psycopg = driver()
    try:
        dsn = resolved(settings.dsn, settings.folder, os.environ)
    except WrongSecret as wrong:
        raise PostgresFailed(str(wrong)) from None
    try:
        asked = psycopg.conninfo.conninfo_to_dict(dsn)
        given: dict[str, Any] = {name: value for name, value in PATIENT.items() if name not in asked}
        given["options"] = " ".join(filter(None, (asked.get("options"), SESSION)))
        given["application_name"] = asked.get("application_name", f"penstock {settings.slot}")
        if log:
            given["replication"] = "database"
        # Statements that are prepared by themselves do not come through every pooler.
        return psycopg.connect(dsn, autocommit=True, prepare_threshold=None, **given)
    except psycopg.Error as error:
        raise PostgresFailed(f"no login to Postgres: {words_of(error)}") from None


async def calling(connection: Any, work: Callable[[], Result]) -> Result:
    """The result of `work`, which uses the connection in a thread. Given up, the server is asked to give it up too."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            # What is between two statements is asked again at the next.
            with contextlib.suppress(Exception):
                await asyncio.to_thread(connection.cancel_safe, timeout=1.0)
            await asyncio.wait([task], timeout=0.2)
        task.exception()
        raise
    except driver().Error as error:
        raise PostgresFailed(f"Postgres: {words_of(error)}") from error


async def connected(settings: PostgresSettings, *, log: bool = False) -> Any:
    """As `connect`; given up, it is closed when it comes."""
    task = asyncio.ensure_future(asyncio.to_thread(connect, settings, log=log))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if task.exception() is None:
            task.result().close()
        raise
