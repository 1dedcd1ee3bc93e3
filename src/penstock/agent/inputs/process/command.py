"""Commands that print events: started, read, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import signal
import subprocess
from typing import IO, Final

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel, InputStatus
from penstock.agent.inputs.lines import LineFraming
from penstock.agent.inputs.process.pumping import Pump
from penstock.agent.inputs.process.reading import DescriptorReader, process_ended
from penstock.agent.inputs.process.settings import ExecSettings
from penstock.agent.inputs.streams import STOP_WITHIN_S

_log = logging.getLogger(__name__)

LOSSY: Final = "lossy: what the agent has read and not yet sent is gone if it is killed"
_SHELL: Final = ("/bin/sh", "-c")
_TERMINATE_WITHIN_S: Final = 5.0
_PIPES_WITHIN_S: Final = 2.0
"""After the command has ended; whoever still holds its pipes then is ended too."""
_BACKOFF_S: Final = (1.0, 60.0)
_REAP_WITHIN_S: Final = 1.0
_STEADY_MS: Final = 60_000.0
_STDERR_LINE_BYTES_MAX: Final = 2_048
_STDERR_LINES_PER_S: Final = 10


class ExecInput:
    def __init__(self, settings: ExecSettings, channel: Channel, env: Environment) -> None:
        self._settings, self._channel, self._env = settings, channel, env
        self._title = shlex.join(settings.command[-1:] if settings.command[:2] == _SHELL else settings.command)
        self._status = InputStatus("exec", f"starting; {LOSSY}")
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._readers: list[DescriptorReader] = []
        self.addresses: list[str] = []
        self.pid: int | None = None
        """Of the command, while it runs; also the id of its process group."""

    async def run(self) -> None:
        self._running = asyncio.create_task(self._run())
        try:
            await asyncio.wait((self._running,))
        finally:
            await self.stop()
        if not self._running.cancelled():
            self._running.result()

    async def stop(self) -> None:
        """The whole process group is asked to end, then made to."""
        self._stopping.set()
        if self._running is None or self._running.done():
            return
        # Long enough for both deadlines of an ending and for what was read to find room.
        await asyncio.wait((self._running,), timeout=_TERMINATE_WITHIN_S + _PIPES_WITHIN_S + STOP_WITHIN_S)
        self._running.cancel()
        await asyncio.wait((self._running,))

    async def close(self) -> None:
        await self.stop()

    def status(self, *, details: bool = False) -> InputStatus:
        return self._status

    async def _run(self) -> None:
        backoff_s = _BACKOFF_S[0]
        while not self._stopping.is_set():
            began_ms = self._env.monotonic_ms()
            await self._run_once()
            ran_ms = self._env.monotonic_ms() - began_ms
            match self._settings.restart:
                case "never":
                    self._say(f"finished: {self._status.words}")
                    return
                case "interval":
                    await self._rest(max(0.0, self._settings.interval_ms - ran_ms) / 1000)
                case "always":
                    backoff_s = _BACKOFF_S[0] if ran_ms >= _STEADY_MS else min(backoff_s * 2, _BACKOFF_S[1])
                    await self._rest(backoff_s / 2)

    async def _run_once(self) -> None:
        try:
            process = await asyncio.to_thread(self._start)
        except OSError as wrong:
            self._failed(f"{self._title} cannot be started: {wrong.strerror or wrong}")
            if self._settings.restart == "never":
                raise
            return
        self.pid = process.pid
        self._say(f"running {self._title} as process {process.pid}; {LOSSY}")
        try:
            await self._follow(process)
        finally:
            self.pid = None
            _kill_group(process.pid, signal.SIGKILL)
            # Killed, so it is a matter of moments. Who hangs in the kernel is left to it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_WITHIN_S)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        code = process.returncode or 0
        if code and not self._stopping.is_set():
            self._failed(f"{self._title} ended with {_words_of(code)}")
        else:
            self._say(f"{self._title} ended with {_words_of(code)}")

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._settings.command,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._settings.working_dir,
            env={**os.environ, **dict(self._settings.environment)},
            start_new_session=True,
        )

    async def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Reads until the command has ended and its pipes are empty, or until the input stops."""
        pumps = [self._pump(process.stdout), self._listen_to_errors(process.stderr)]
        tasks = [asyncio.create_task(pump) for pump in pumps]
        ended = asyncio.create_task(process_ended(process.pid))
        stopping = asyncio.create_task(self._stopped())
        try:
            await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                _kill_group(process.pid, signal.SIGTERM)
                await asyncio.wait((ended,), timeout=_TERMINATE_WITHIN_S)
                _kill_group(process.pid, signal.SIGKILL)
            await self._empty(tasks, process.pid)
        finally:
            await _end([*tasks, ended, stopping])
            self._readers.clear()
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _empty(self, tasks: list[asyncio.Task[None]], group: int) -> None:
        """What is in the pipes is read to its end. Processes that were left behind hold them open: they are ended."""
        _, unfinished = await asyncio.wait(tasks, timeout=_PIPES_WITHIN_S)
        if not unfinished:
            return
        _kill_group(group, signal.SIGKILL)
        while unfinished and not self._stopping.is_set():
            # Only for want of room can they still be at it; that may last.
            _, unfinished = await asyncio.wait(unfinished, timeout=_PIPES_WITHIN_S)
        if unfinished:
            for reader in self._readers:
                reader.stop()
            await asyncio.wait(unfinished, timeout=STOP_WITHIN_S)

    async def _pump(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None, "every pipe was asked for"
        reader = DescriptorReader(pipe.fileno())
        self._readers.append(reader)
        await Pump(reader, self._channel, self._status, self._settings.line_bytes_max).run()

    async def _listen_to_errors(self, pipe: IO[bytes] | None) -> None:
        if self._settings.stderr == "capture":
            await self._pump(pipe)
            return
        assert pipe is not None, "every pipe was asked for"
        reader = DescriptorReader(pipe.fileno())
        self._readers.append(reader)
        framing = LineFraming(_STDERR_LINE_BYTES_MAX, keep_empty=False)
        voice = _Voice(self._env)
        while data := await reader.read():
            voice.say(framing.feed(data).messages)
        voice.say(framing.end().messages)

    async def _stopped(self) -> None:
        await self._stopping.wait()

    async def _rest(self, wait_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._stopping.wait()

    def _say(self, words: str) -> None:
        self._status.words = words

    def _failed(self, words: str) -> None:
        self._status.errors += 1
        self._status.words = self._status.last_error = words
        _log.warning("input %s: %s", self._env.input, words)


class _Voice:
    """What a command complains about, in the agent's log, and no more of it than somebody can read."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._second = 0
        self._said = 0
        self._left_out = 0

    def say(self, lines: list[bytes]) -> None:
        second = int(self._env.monotonic_ms() // 1000)
        if second != self._second:
            if self._left_out:
                _log.warning("input %s: %d more lines on stderr", self._env.input, self._left_out)
            self._second, self._said, self._left_out = second, 0, 0
        for line in lines:
            if self._said < _STDERR_LINES_PER_S:
                self._said += 1
                _log.warning("input %s: stderr: %s", self._env.input, line.decode("utf-8", "backslashreplace"))
            else:
                self._left_out += 1


def _kill_group(group: int, number: signal.Signals) -> None:
    """Called before the leader is reaped, so that the number cannot belong to somebody else."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _words_of(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
