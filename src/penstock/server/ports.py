"""The real clock, and work off the loop: threads for single C calls, helper processes for everything longer."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from penstock.model.errors import PenstockError
from penstock.model.ids import Millis

T = TypeVar("T")

_REPLY_BYTES_MAX = 64 << 20


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def now_ms(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000.0


class WorkerFailed(PenstockError):
    """A helper process did not bring its task to an end. `task` names it, `why` holds its last words."""

    def __init__(self, task: str, why: str) -> None:
        super().__init__(f"{task}: {why}")
        self.task, self.why = task, why


class ThreadOffload:
    """Runs C calls in a few threads, and tasks in helper processes, a bounded number at a time.

    A helper is started by exec (`python -m penstock.server.worker`), never by fork: a fork would copy the loop, its
    sockets and its locks. It is sent one line of JSON, `{"task": ..., "arguments": {...}}`, answers with one,
    `{"result": {...}}` or `{"error": "..."}`, and ends when its input does.
    """

    __slots__ = ("_executor", "_module", "_processes", "_seats")

    def __init__(self, *, threads: int = 4, processes: int = 1, module: str = "penstock.server.worker") -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="penstock-offload")
        self._seats = asyncio.Semaphore(processes)
        self._processes: set[asyncio.subprocess.Process] = set()
        self._module = module

    def call(self, work: Callable[..., T], *args: Any) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._executor, work, *args)

    async def run(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The task's result; `WorkerFailed` when it broke. Cancelling kills the helper."""
        asking = json.dumps({"task": task, "arguments": arguments}).encode() + b"\n"
        async with self._seats:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self._module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_REPLY_BYTES_MAX,
            )
            self._processes.add(process)
            try:
                answer, words = await process.communicate(asking)
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise
            finally:
                self._processes.discard(process)
        return _result_of(task, process.returncode, answer, words)

    def close(self) -> None:
        """Kills helpers that still run and lets the threads finish what they have begun."""
        for process in self._processes:
            if process.returncode is None:
                process.kill()
        self._executor.shutdown(wait=True)


def _result_of(task: str, code: int | None, answer: bytes, words: bytes) -> dict[str, Any]:
    if code:
        last = words.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise WorkerFailed(task, f"the helper ended with {code}: {last[0] if last else 'it said nothing'}")
    try:
        reply = json.loads(answer)
    except ValueError:
        raise WorkerFailed(task, f"the helper answered with {len(answer)} bytes that are no JSON") from None
    if not isinstance(reply, dict) or not isinstance(reply.get("result"), dict):
        raise WorkerFailed(task, str(reply.get("error") if isinstance(reply, dict) else reply))
    result: dict[str, Any] = reply["result"]
    return result
