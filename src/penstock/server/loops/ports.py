"""The real clock, and work off the loop: threads for single C calls, helper processes for everything longer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

from penstock.model.errors import PenstockError
from penstock.model.ids import Millis
from penstock.server.loops.hang_watch import Unanswered, path_of
from penstock.server.loops.threads import CallThreads

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


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


class _Helper:
    """One helper process, attended by a thread; anybody may kill it, also before it was started."""

    __slots__ = ("_lock", "_module", "killed", "process")

    def __init__(self, module: str) -> None:
        self._module, self._lock, self.killed = module, threading.Lock(), False
        self.process: subprocess.Popen[bytes] | None = None

    def attend(self, asking: bytes) -> tuple[int, bytes, bytes]:
        """Its exit code, answer and last words."""
        pipe = subprocess.PIPE
        with self._lock:
            if self.killed:
                return -1, b"", b"it was stopped before it began"
            self.process = subprocess.Popen([sys.executable, "-m", self._module], stdin=pipe, stdout=pipe, stderr=pipe)
        answer, words = self.process.communicate(asking)
        return self.process.returncode, answer, words

    def kill(self) -> None:
        with self._lock:
            self.killed = True
            if self.process is not None:
                self.process.kill()


class ThreadOffload:
    """Runs C calls in a few threads, and tasks in helper processes, a bounded number at a time.

    A helper is started by exec (`python -m penstock.server.loops.worker`), never by fork: a fork would copy the loop,
    its sockets and its locks, and run what libraries beside us do in the child of one. The loop's own way to start a
    process forks; `subprocess` does not. So a thread starts the helper and waits for it. It is sent one line of JSON,
    `{"task": ..., "arguments": {...}}`, answers with one, `{"result": {...}}` or `{"error": "..."}`, and ends when
    its input does.
    """

    __slots__ = ("_attendants", "_helpers", "_module", "_seats", "_threads")

    def __init__(self, *, threads: int = 4, processes: int = 1, module: str = "penstock.server.loops.worker") -> None:
        self._threads = CallThreads(threads)
        self._attendants = ThreadPoolExecutor(processes, thread_name_prefix="penstock-helper")
        self._seats = asyncio.Semaphore(processes)
        self._helpers: set[_Helper] = set()
        self._module = module

    def call(self, work: Callable[[*Ts], T], *args: *Ts) -> Awaitable[T]:
        return self._threads.call(work, *args)

    def unanswered(self) -> list[Unanswered]:
        """The calls to disks that have not come back."""
        return [
            Unanswered(since_s * 1_000, path)
            for since_s, work, args in self._threads.running()
            if (path := path_of((work,)) or next(filter(None, map(path_of, args)), None)) is not None
        ]

    async def run(self, task: str, arguments: dict[str, object]) -> dict[str, object]:
        """The task's result; `WorkerFailed` when it broke. Cancelling kills the helper."""
        asking = json.dumps({"task": task, "arguments": arguments}).encode() + b"\n"
        async with self._seats:
            helper = _Helper(self._module)
            self._helpers.add(helper)
            ended = asyncio.get_running_loop().run_in_executor(self._attendants, helper.attend, asking)
            try:
                code, answer, words = await asyncio.shield(ended)
            except asyncio.CancelledError:
                helper.kill()
                await asyncio.wait([ended])
                raise
            finally:
                self._helpers.discard(helper)
        return _result_of(task, code, answer, words)

    def close(self) -> None:
        """Kills helpers that still run and lets the threads finish what they have begun."""
        for helper in self._helpers:
            helper.kill()
        self._attendants.shutdown(wait=True)
        self._threads.close()


def _result_of(task: str, code: int, answer: bytes, words: bytes) -> dict[str, object]:
    if code:
        last = words.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise WorkerFailed(task, f"the helper ended with {code}: {last[0] if last else 'it said nothing'}")
    try:
        reply = json.loads(answer)
    except ValueError:
        raise WorkerFailed(task, f"the helper answered with {len(answer)} bytes that are no JSON") from None
    if not isinstance(reply, dict) or not isinstance(reply.get("result"), dict):
        raise WorkerFailed(task, str(reply.get("error") if isinstance(reply, dict) else reply))
    result: dict[str, object] = reply["result"]
    return result
