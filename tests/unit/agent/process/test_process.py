"""Standard input and commands."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.inputs.process import command as command_module
from penstock.agent.inputs.process.kind import make, read
from penstock.agent.inputs.process.stdin import StdinInput
from penstock.agent.portion import TRUNCATED
from tests.patience import until, within
from tests.unit.agent.listening.channels import HandChannel, environment, on_loop, read_table, running


def stdin(channel: HandChannel, descriptor: int) -> StdinInput:
    settings, mistakes = read_table('type = "stdin"', read)
    assert not mistakes
    return StdinInput(settings, channel, descriptor=descriptor)


def execute(channel: HandChannel, command: Any, **changes: Any) -> Any:
    text = "\n".join(
        f"{key} = {_toml(value)}" for key, value in {"type": "exec", "command": command, **changes}.items()
    )
    settings, mistakes = read_table(text, read)
    assert not mistakes
    return make(settings, channel, environment())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else f"'''{value}'''"


def alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@on_loop
async def test_a_pipe_is_read_to_its_end_and_then_the_input_is_finished() -> None:
    channel = HandChannel()
    read_end, write_end = os.pipe()
    made = stdin(channel, read_end)
    async with running(made) as task:
        os.write(write_end, b"one\n\ntwo\nla")
        await until(lambda: channel.values == [b"one", b"", b"two"])
        os.write(write_end, b"st")
        os.close(write_end)
        async with asyncio.timeout(within(10)):
            await task
    os.close(read_end)
    assert channel.values == [b"one", b"", b"two", b"last"]
    assert made.status().words == "finished: standard input has ended"
    assert made.status().events == 4


@on_loop
async def test_files_and_nothing_at_all_can_be_standard_input(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"a\nb\n" * 200_000)
    for path, events in ((tmp_path / "lines", 400_000), (Path("/dev/null"), 0)):
        channel = HandChannel()
        with path.open("rb") as file:
            made = stdin(channel, file.fileno())
            async with running(made) as task, asyncio.timeout(within(10)):
                await task
        assert len(channel.values) == events


@on_loop
async def test_a_writer_waits_when_there_is_no_room() -> None:
    channel = HandChannel(open=False)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    made = stdin(channel, read_end)
    async with running(made):
        written = 0
        with contextlib.suppress(BlockingIOError):
            while written < 100 << 20:
                written += os.write(write_end, b"line\n" * 100)
                await asyncio.sleep(0)
        assert written < 2 << 20, "the pipe is full"
        channel.open()
        await until(lambda: made.status().bytes == written // 5 * 4)
        os.close(write_end)
    os.close(read_end)


@on_loop
async def test_a_stop_ends_the_waiting_and_marks_what_is_not_whole() -> None:
    channel = HandChannel()
    read_end, write_end = os.pipe()
    made = stdin(channel, read_end)
    async with running(made) as task:
        os.write(write_end, b"whole\nhalf")
        await until(lambda: channel.values)
        await made.stop()
        async with asyncio.timeout(within(10)):
            await task
    assert list(zip(channel.values, channel.marks, strict=True)) == [(b"whole", ""), (b"half", TRUNCATED)]
    assert made.status().words == "stopped"
    os.close(write_end)
    os.close(read_end)


@on_loop
async def test_a_command_is_run_with_its_environment_and_directory(tmp_path: Path) -> None:
    channel = HandChannel()
    made = execute(
        channel, "echo $GREETING; pwd; exit 3", restart="never", environment={"GREETING": "hi"}, working_dir="/"
    )
    async with running(made) as task, asyncio.timeout(within(10)):
        await task
    assert channel.values == [b"hi", b"/"]
    assert made.status().words == "finished: 'echo $GREETING; pwd; exit 3' ended with exit code 3"
    assert made.status().errors == 1


@on_loop
async def test_what_a_command_complains_about_is_logged_or_captured(caplog: pytest.LogCaptureFixture) -> None:
    for stderr, values in (("log", []), ("capture", [b"oh no"])):
        channel = HandChannel()
        made = execute(channel, "echo oh no >&2", restart="never", stderr=stderr)
        async with running(made) as task, asyncio.timeout(within(10)):
            await task
        assert channel.values == values
    assert caplog.messages == ["input in: stderr: oh no"]


@on_loop
async def test_a_command_is_started_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "_BACKOFF_S", (0.01, 0.01))
    for restart in ("always", "100ms"):
        channel = HandChannel()
        made = execute(channel, ["echo", "again"], restart=restart)
        async with running(made):
            assert "lossy" in made.status().words
            await until(lambda channel=channel: channel.values == [b"again"] * 3)


@on_loop
async def test_a_command_that_is_not_there_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "_BACKOFF_S", (0.01, 0.01))
    made = execute(HandChannel(), ["/no/such/command"])
    async with running(made):
        await until(lambda: made.status().errors >= 3)
        assert made.status().last_error == "/no/such/command cannot be started: No such file or directory"
    never = execute(HandChannel(), ["/no/such/command"], restart="never")
    with pytest.raises(FileNotFoundError):
        await never.run()


@on_loop
async def test_a_stop_ends_the_whole_process_group_by_force_if_need_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "_TERMINATE_WITHIN_S", 0.2)
    channel = HandChannel()
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(99)"
    )
    made = execute(channel, f'sleep 99 & echo $!; {sys.executable} -c "{stubborn}"')
    async with running(made):
        await until(lambda: len(channel.values) == 2)
        pids = [int(channel.values[0]), made.pid]
        assert all(map(alive, pids))
        await made.stop()
    await until(lambda: not any(map(alive, pids)))


@on_loop
async def test_who_a_command_leaves_behind_does_not_hold_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "_PIPES_WITHIN_S", 0.1)
    channel = HandChannel()
    made = execute(channel, "sleep 99 & echo $!", restart="never")
    async with running(made) as task, asyncio.timeout(within(10)):
        await task
    await until(lambda: not alive(int(channel.values[0])))


@on_loop
async def test_a_command_that_is_killed_is_told_so() -> None:
    channel = HandChannel()
    made = execute(channel, "echo up; sleep 99", restart="never")
    async with running(made) as task:
        await until(lambda: channel.values)
        os.killpg(made.pid, signal.SIGKILL)
        async with asyncio.timeout(within(10)):
            await task
        assert made.status().last_error.endswith("ended with signal SIGKILL")


@on_loop
async def test_a_command_that_prints_without_end_waits_for_room() -> None:
    channel = HandChannel(open=False)
    made = execute(channel, ["yes"])
    async with running(made):
        await until(lambda: made.pid is not None)
        channel.open()
        await until(lambda: len(channel.values) > 100_000)
    assert set(channel.values[:-1]) == {b"y"}


def test_what_is_wrong_with_the_settings(tmp_path: Path) -> None:
    def wrong(text: str) -> str:
        return "\n".join(read_table(f'type = "exec"\n{text}', read, tmp_path)[1])

    assert "has no command" in wrong("")
    assert "command is empty" in wrong("command = []")
    assert "restart = 'sometimes' is not known" in wrong('command = "ls"\nrestart = "sometimes"')
    assert "there is no directory" in wrong('command = "ls"\nworking_dir = "nowhere"')
    assert "did you mean 'capture'" in wrong('command = "ls"\nstderr = "captured"')
