"""`penstock agent`: files are written, checked and tried out; agents run as good services and are found."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.processes import birth_of
from tests.cli.command import DEADLINE_S, PENSTOCK, Running, Said, penstock
from tests.compat.processes import wait_for
from tests.patience import within

ACCESS = """\
203.0.113.7 - - [01/Nov/2026:08:00:00 +0000] "GET /shop HTTP/1.1" 200 512 "-" "Mozilla/5.0"
who put this here
"""
READY = r"is ready: .*; http://(127\.0\.0\.1:\d+)/status"


def agent(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> Said:
    return penstock("agent", *arguments, stdin=stdin, cwd=cwd)


def written(folder: Path, text: str, name: str = "agent.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def lines_agent(folder: Path, bootstrap: str, topic: str, more: str = "") -> Path:
    """Takes lines over TCP on any port."""
    return written(
        folder,
        f'name = "web-1"\nbootstrap = "{bootstrap}"\n'
        f'[inputs.lines]\ntype = "tcp"\nlisten = "tcp://127.0.0.1:0"\ntopic = "{topic}"\n{more}',
    )


# -- files


def test_a_first_file_is_valid_as_it_stands_and_with_everything_in_it(tmp_path: Path) -> None:
    said = agent("init", "shop.toml", "--tail", "/var/log/*.log", "--topic", "shop", "-b", "b:1", cwd=tmp_path)
    assert (said.code, said.out) == (0, "")
    text = (tmp_path / "shop.toml").read_text()
    assert all(
        words in text for words in ('name = "shop"', 'bootstrap = "b:1"', '["/var/log/*.log"]', 'topic = "shop"')
    )
    everything = "\n".join(line.removeprefix("# ") for line in text.splitlines()[5:])
    for each in (text, everything):
        checked = agent("validate", written(tmp_path, each))
        assert (checked.code, checked.out) == (0, ""), checked.out
    assert agent("init", "shop.toml", cwd=tmp_path).code == 1
    assert agent("init", "shop.toml", "--force", cwd=tmp_path).code == 0


def test_validate_tells_every_mistake_with_its_place_and_fails(tmp_path: Path) -> None:
    file = written(tmp_path, 'name = "a b"\n[inputs.x]\ntype = "tial"\n[inputs.y]\ntype = "stdin"\ntopics = "t"\n')
    said = agent("validate", "-c", file)
    assert said.code == 1
    places = [line.removeprefix(f"{file}:").split(": ")[0] for line in said.out.splitlines()]
    assert places == ["1:1", "3:1", "4:1", "6:1"]
    assert "did you mean 'tail'?" in said.out
    assert "has 4 mistakes" in said.err
    data = agent("validate", file, "--format", "json").data
    assert [(each["line"], each["severity"]) for each in data if each["severity"] == "error"] == [
        (1, "error"),
        (3, "error"),
        (4, "error"),
        (6, "error"),
    ]
    assert agent("run", file).code == 1


def test_the_file_is_the_one_that_is_named_or_the_one_that_is_here(tmp_path: Path) -> None:
    missing = agent("validate", cwd=tmp_path)
    assert missing.code == 2
    assert "`penstock agent init` writes one" in missing.err
    agent("init", cwd=tmp_path)
    assert agent("validate", cwd=tmp_path).err == "agent.toml is fine\n"
    other = written(tmp_path, "", "other.toml")
    assert agent("validate", "agent.toml", "-c", other, cwd=tmp_path).code == 2


@pytest.mark.parametrize(
    "arguments",
    [("--tail", "x"), ("--topic", "t"), ("-c", "agent.toml", "--tail", "x", "--topic", "t"), ("-X", "acks=0")],
)
def test_what_makes_no_sense_is_a_mistake_of_the_command(arguments: tuple[str, ...], tmp_path: Path) -> None:
    agent("init", cwd=tmp_path)
    assert agent("run", *arguments, cwd=tmp_path).code == 2


# -- samples


@pytest.fixture
def tried(tmp_path: Path) -> Path:
    written(tmp_path, ACCESS, "sample.log")
    return written(
        tmp_path,
        'name = "t"\nhost = "web-1"\n[inputs.access]\ntype = "tail"\npaths = ["x"]\ntopic = "access"\nkey = "client"\n'
        'timestamp = "time"\ndead_letters = "broken"\n[[inputs.access.transforms]]\nparse = "access_log"\n',
    )


def test_a_sample_becomes_records_without_a_broker(tried: Path) -> None:
    said = agent("test", "-c", tried, "sample.log", cwd=tried.parent)
    assert (said.code, said.err) == (0, "2 records, 1 of them dead letters\n")
    first, value, headers, second, broken, why = said.out.splitlines()
    assert first == "→ access  key 203.0.113.7  at 2026-11-01T08:00:00.000Z"
    assert '"status":200' in value
    assert headers == f"  host: web-1  path: {tried.parent}/sample.log"
    assert second.startswith("→ broken")
    assert broken == "  who put this here"
    assert "agent.error: step 1 (parse access_log)" in why


def test_a_sample_from_standard_input_for_programs(tried: Path) -> None:
    said = agent("test", "-c", tried, "--input", "access", "--format", "json", "-", stdin=ACCESS)
    good, bad = [json.loads(line) for line in said.out.splitlines()]
    assert (good["topic"], good["key"], good["timestamp_ms"]) == ("access", "203.0.113.7", 1_793_520_000_000)
    assert (bad["topic"], bad["dead"], bad["value"]) == ("broken", True, "who put this here")


def test_which_input_a_sample_came_through_is_asked_and_guessed(tried: Path) -> None:
    tried.write_text(tried.read_text() + '[inputs.other]\ntype = "stdin"\ntopic = "o"\n')
    assert "--input with one of access, other" in agent("test", "-c", tried, stdin="").err
    assert "did you mean 'other'?" in agent("test", "-c", tried, "-i", "othr", stdin="").err


# -- running


def test_a_service_is_ready_reloads_refuses_a_second_one_and_stops_in_order(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(within(DEADLINE_S))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        penstock("topic", "create", "agent-service", "-b", bootstrap)
        file = lines_agent(tmp_path, bootstrap, "agent-service")
        with Running("agent", "run", "-c", file, "--quiet", log=tmp_path / "log") as running:
            running.wait_to_say(READY)
            assert heard(systemd) == "READY=1"
            monkeypatch.delenv("NOTIFY_SOCKET")
            send_lines(file, "one\ntwo\n")
            said = penstock("consume", "agent-service", "-n", "2", "-f", "%v\n", "-b", bootstrap)
            assert said.out == "one\ntwo\n"

            second = agent("run", file)
            assert second.code == 1
            assert "which is running: stop it first" in second.err

            lines_agent(
                tmp_path, bootstrap, "agent-service", '[inputs.also]\ntype = "tcp"\nlisten = ":0"\ntopic = "u"\n'
            )
            left = json.loads((tmp_path / ".penstock-agent/web-1/agent.json").read_text())
            pid = left["pid"]
            assert left["born"] == birth_of(pid)
            os.kill(pid, signal.SIGHUP)
            running.wait_to_say(r"reloaded .*: started also; 1 unchanged")
            assert {heard(systemd), heard(systemd)} == {"RELOADING=1", "READY=1"}
            file.write_text(file.read_text() + "bogus = 1\n")
            os.kill(pid, signal.SIGHUP)
            running.wait_to_say(r"not reloaded, the agent goes on as it was:\n.*'bogus' means nothing")
            assert {heard(systemd), heard(systemd)} == {"RELOADING=1", "READY=1"}
            assert running.stop() == 0
            assert heard(systemd) == "STOPPING=1"
        assert not (tmp_path / ".penstock-agent/web-1/agent.json").exists()


def heard(systemd: socket.socket) -> str:
    """The next thing that matters; how it is doing is told in between."""
    while True:
        first = systemd.recv(4096).decode().splitlines()[0]
        if first != "WATCHDOG=1":
            return first


def send_lines(file: Path, text: str) -> None:
    words = agent("status", "-c", file, "--format", "json").data["inputs"]["lines"]["words"]
    port = int(re.search(r":(\d+)$", words)[1])  # type: ignore[index]  # it fails well enough
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(text.encode())


def test_status_finds_a_running_agent_and_says_how_it_is(bootstrap: str, tmp_path: Path) -> None:
    file = lines_agent(tmp_path, bootstrap, "agent-status")
    state = tmp_path / "elsewhere"
    gone = agent("status", file)
    assert gone.code == 3
    assert "no agent runs on" in gone.err
    with Running("agent", "run", file, "--state-dir", state, "--format", "json", log=tmp_path / "log") as running:
        admin = running.wait_to_say(READY)[1]
        assert agent("status", file).code == 3
        wait_for("brokers", lambda: agent("status", "--state-dir", state).code == 0, timeout_s=DEADLINE_S)
        text = agent("status", "--state-dir", state).out
        assert text.startswith("web-1  (running for ")
        assert re.search(r"^lines  tcp +0 +0 ", text, re.M)
        data = agent("status", "--state-dir", state, "--format", "json").data
        assert (data["name"], data["admin"], data["reasons"]) == ("web-1", admin, [])
        with urllib.request.urlopen(f"http://{admin}/metrics", timeout=within(10)) as reply:
            assert 'penstock_agent_events_total{input="lines",type="tcp"} 0' in reply.read().decode()
        running.wait_to_say(r'"name": "web-1", "state": "running"')
        assert running.stop(signal.SIGINT) == 0


def test_an_agent_without_brokers_is_not_well_and_ends_at_once_when_told_twice(tmp_path: Path) -> None:
    file = lines_agent(tmp_path, "127.0.0.1:1", "t")
    with Running("agent", "run", file, log=tmp_path / "log") as running:
        running.wait_to_say(READY)
        running.wait_to_say(r"\nno broker answers at 127\.0\.0\.1:1 \(")
        found = agent("status", file)
        assert found.code == 10
        assert "!        no broker answers at 127.0.0.1:1" in found.out
        send_lines(file, "one\n")
        wait_for("a line", lambda: agent("status", file, "--format", "json").data["memory_bytes"], timeout_s=DEADLINE_S)
        pid = json.loads((tmp_path / ".penstock-agent/web-1/agent.json").read_text())["pid"]
        os.kill(pid, signal.SIGTERM)
        running.wait_to_say("stopping: what was read is sent first")
        assert running.stop() == 1


def test_without_a_file_tail_and_topic_are_enough(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "one\ntwo\n", "a.log")
    penstock("topic", "create", "agent-quick", "-b", bootstrap)
    quick = ("agent", "run", "--tail", "*.log", "--topic", "agent-quick", "-b", bootstrap)
    with Running(*quick, log=tmp_path / "out") as running:
        running.wait_to_say(READY)
        said = penstock("consume", "agent-quick", "-n", "2", "-f", "%v\n", "-b", bootstrap)
        assert said.out == "one\ntwo\n"
        wait_for("brokers", lambda: agent("status", cwd=tmp_path).code == 0, timeout_s=DEADLINE_S)
        found = agent("status", "--files", cwd=tmp_path)
        assert re.search(rf"^tail   {re.escape(str(tmp_path))}/a\.log +8 +8 ", found.out, re.M)
        assert running.stop(signal.SIGINT) == 0
    assert (tmp_path / ".penstock-agent" / "tail-agent-quick").is_dir()


def test_on_a_terminal_there_is_a_live_table(bootstrap: str, tmp_path: Path) -> None:
    file = lines_agent(tmp_path, bootstrap, "agent-live")
    with terminal() as (screen, stream):
        command = [*PENSTOCK, "agent", "run", "-c", str(file)]
        with subprocess.Popen(command, stdin=stream, stdout=stream, stderr=stream, start_new_session=True) as process:
            try:
                seen = b""
                while b"EVENTS/S" not in seen or "● ".encode() not in seen:
                    seen += os.read(screen, 1 << 16)
                process.send_signal(signal.SIGINT)
                while b"web-1 ran" not in seen:
                    seen += os.read(screen, 1 << 16)
                assert process.wait(within(DEADLINE_S)) == 0
            finally:
                process.kill()


def test_an_agent_whose_terminal_is_closed_stops_and_does_not_reload(bootstrap: str, tmp_path: Path) -> None:
    file = lines_agent(tmp_path, bootstrap, "agent-closed")
    screen, stream = pty.openpty()
    command = [*PENSTOCK, "agent", "run", "-c", str(file)]
    with subprocess.Popen(command, stdin=stream, stdout=stream, stderr=stream, start_new_session=True) as process:
        try:
            os.close(stream)
            seen = b""
            while b"EVENTS/S" not in seen:
                seen += os.read(screen, 1 << 16)
            os.close(screen)
            process.send_signal(signal.SIGHUP)
            process.wait(within(DEADLINE_S))
        finally:
            process.kill()
    assert not (tmp_path / ".penstock-agent/web-1/agent.json").exists()


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    screen, stream = pty.openpty()
    try:
        yield screen, stream
    finally:
        os.close(stream)
        os.close(screen)
