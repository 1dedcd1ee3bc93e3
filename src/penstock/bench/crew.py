"""The client processes of a run, from the side of whoever measures."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from penstock.bench.jobs import Failed, Job, Moved
from penstock.bench.worker import GO, READY
from penstock.client.errors import TimedOutWaiting
from penstock.model.errors import PenstockError

CONNECT_S_MAX = 120.0
"""From the start of a process, or of Spark, to connections that stand."""
BEYOND_S_MAX = 700.0
"""How much longer than asked a job may take: filling a topic and Spark's jobs have no seconds of their own."""


class _Member:
    """One process."""

    def __init__(self) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", "penstock.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            # Ctrl-C is for the one who measures; it ends these.
            start_new_session=True,
        )

    def tell(self, message: object) -> None:
        assert self._process.stdin is not None, "it was asked for"
        try:
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    async def hear(self, within_s: float) -> Any:
        """Its next answer; whatever kept it from doing its job is raised here."""
        source = self._process.stdout
        assert source is not None, "it was asked for"
        try:
            async with asyncio.timeout(within_s):
                answer = await asyncio.to_thread(pickle.load, source)
        except EOFError:
            raise self._ended() from None
        except TimeoutError:
            raise TimedOutWaiting(f"a client process was not done within {within_s:.0f} s") from None
        if isinstance(answer, Failed):
            raise answer.why
        return answer

    def _ended(self) -> PenstockError:
        self._words.seek(0)
        said = self._words.read().decode(errors="replace").strip().splitlines()
        return PenstockError(f"a client process ended: {said[-1] if said else 'it said nothing'}")

    def end(self) -> None:
        # Spark has children of its own in this session.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._words):
            assert stream is not None, "it was asked for"
            # Something for it may still be in a buffer.
            with suppress(BrokenPipeError):
                stream.close()


class Crew:
    """`size` client processes; a context manager that ends them, whatever they are doing."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._members: list[_Member] = []

    def __enter__(self) -> Crew:
        for _ in range(self._size):
            self._members.append(_Member())
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        while self._members:
            self._members.pop().end()

    async def run(self, jobs: Sequence[Job]) -> list[Moved]:
        """A job for each of the first processes; all of them start at the same time.

        When one of them fails, or nobody wants to know any more, all end: what they use may be taken away now.
        """
        try:
            return await self._run(self._members[: len(jobs)], jobs)
        except BaseException:
            self._end()
            raise

    async def _run(self, members: Sequence[_Member], jobs: Sequence[Job]) -> list[Moved]:
        for member, job in zip(members, jobs, strict=True):
            member.tell(job)
        for ready in await asyncio.gather(*(member.hear(CONNECT_S_MAX) for member in members)):
            assert ready == READY, "the first answer says that connections stand"
        for member in members:
            member.tell(GO)
        within_s = jobs[0].seconds + BEYOND_S_MAX
        moved: list[Moved] = await asyncio.gather(*(member.hear(within_s) for member in members))
        return moved
