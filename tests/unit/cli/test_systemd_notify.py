"""What systemd hears of us: datagrams on its socket, and nothing where there is none."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.systemd_notify import Notify


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(10)
        yield listener


def test_it_says_when_it_is_ready_alive_and_stopping(heard: socket.socket) -> None:
    notify = Notify({"NOTIFY_SOCKET": heard.getsockname(), "WATCHDOG_USEC": "60000000"})
    assert notify.watchdog_s == 60.0
    notify.ready("2 inputs")
    notify.alive("12 events")
    notify.stopping()
    said = [heard.recv(1024).decode() for _ in range(3)]
    assert said == ["READY=1\nSTATUS=2 inputs", "WATCHDOG=1\nSTATUS=12 events", "STOPPING=1\nSTATUS=stopping"]


def test_a_reload_carries_the_time_at_which_it_began(heard: socket.socket) -> None:
    before_us = time.monotonic_ns() // 1000
    Notify({"NOTIFY_SOCKET": heard.getsockname()}).reloading()
    first, second = heard.recv(1024).decode().splitlines()
    assert first == "RELOADING=1"
    assert before_us <= int(second.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


def test_a_name_that_is_no_file_is_reached_too() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        name = f"penstock-test-{os.getpid()}"
        listener.bind(f"\0{name}")
        listener.settimeout(10)
        Notify({"NOTIFY_SOCKET": f"@{name}"}).ready("well")
        assert listener.recv(1024) == b"READY=1\nSTATUS=well"


def test_nobody_listening_is_no_reason_to_fail(tmp_path: Path) -> None:
    Notify({}).ready("well")
    Notify({"NOTIFY_SOCKET": str(tmp_path / "gone")}).stopping()
    elsewhere = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}
    assert Notify(elsewhere).watchdog_s == 0.0
