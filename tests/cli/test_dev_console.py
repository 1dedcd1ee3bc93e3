"""`penstock dev` runs the console too, says where it is, and goes on without it."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from penstock.processes import command_line
from tests.cli.command import Running
from tests.patience import wait_for

ADDRESS = r"console\s+(http://127\.0\.0\.1:\d+/)"


@pytest.fixture(autouse=True)
def _with_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_NO_CONSOLE", "0")


def asked(address: str, path: str) -> tuple[int, Any]:
    """Status and answer; 0 while nobody listens."""
    try:
        with urllib.request.urlopen(f"{address}api/v1/{path}") as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)
    except OSError:
        return 0, None


def consoles(folder: Path) -> list[int]:
    """Processes that are consoles of brokers whose console writes to this folder."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and " console --port " in command_line(int(each.name)):
            try:
                if os.readlink(each / "fd" / "1") == str(folder / "console.log"):
                    found.append(int(each.name))
            except OSError:
                continue
    return found


def test_it_comes_with_a_node_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Running("dev", "--port", "0", "--data-dir", folder, log=tmp_path / "log") as node:
        address = node.wait_to_say(ADDRESS)[1]
        wait_for("the overview", lambda: asked(address, "overview")[0] == 200, timeout_s=30)
        assert asked(address, "tables")[1]["warehouses"] == [str(Path.cwd() / "lake")]
        (console,) = consoles(folder)
        assert (folder / "console-audit.log").stat().st_mode & 0o777 == 0o600, "what is done there is written down"
        assert os.getpriority(os.PRIO_PROCESS, console) == 10
        os.kill(console, signal.SIGKILL)
        wait_for("the console to be gone", lambda: not consoles(folder), timeout_s=10)
        assert node.running
        assert node.stop() == 0


def test_a_port_that_is_taken_is_no_reason_not_to_come(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8080))
        except OSError:
            pass  # somebody else has it, which is as good
        else:
            taken.listen()
        with Running("dev", "--port", "0", "--data-dir", tmp_path / "data", log=tmp_path / "log") as node:
            address = node.wait_to_say(ADDRESS)[1]
            assert ":8080/" not in address
            wait_for("the session", lambda: asked(address, "session")[0] == 200, timeout_s=30)
            assert node.stop() == 0


def test_it_does_not_outlive_a_node_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Running("dev", "--port", "0", "--data-dir", folder, log=tmp_path / "log") as node:
        address = node.wait_to_say(ADDRESS)[1]
        wait_for("the session", lambda: asked(address, "session")[0] == 200, timeout_s=30)
        os.kill(node.pid, signal.SIGKILL)
        wait_for("the console to be gone", lambda: not consoles(folder), timeout_s=30)


def test_without_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Running("dev", "--port", "0", "--data-dir", folder, "--no-console", log=tmp_path / "log") as node:
        node.wait_to_say("try")
        assert "console" not in node.words
        assert consoles(folder) == []
        assert node.stop() == 0


def test_several_nodes_have_one_and_say_when_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    arguments = ("dev", "--nodes", "3", "--port", "0", "--data-dir", folder)
    with Running(*arguments, log=tmp_path / "log") as cluster:
        address = cluster.wait_to_say(ADDRESS)[1]
        told = wait_for(
            "three brokers",
            lambda: (a := asked(address, "overview"))[0] == 200 and a[1]["cluster"]["alive"] == 3,
            timeout_s=60,
        )
        assert told
        (console,) = consoles(folder)
        os.kill(console, signal.SIGKILL)
        cluster.wait_to_say("the console has ended")
        assert cluster.stop() == 0


def test_a_secured_node_asks_for_a_login(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Running("dev", "--secure", "--port", "0", "--data-dir", folder, log=tmp_path / "log") as node:
        address = node.wait_to_say(ADDRESS)[1]
        session = wait_for(
            "a console that sees the cluster",
            lambda: (a := asked(address, "session"))[0] == 200 and a[1]["clusters"][0]["state"] == "ok" and a[1],
            timeout_s=60,
        )
        assert (session["login"], session["needs_login"]) == ("kafka", True)
        assert asked(address, "overview")[0] == 401
        assert node.stop() == 0
