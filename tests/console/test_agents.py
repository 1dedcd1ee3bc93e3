"""Agents: by their admin ports, and by positions that they keep in the cluster; lines are followed to files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.presence import find
from penstock.testing import EmbeddedBroker
from tests.console.running import RunningConsole, running, settings_for
from tests.patience import wait_for, within

NOBODY = "http://127.0.0.1:9"
FILE = """\
name = "web"
bootstrap = "{bootstrap}"
state_dir = "state"
machine_id = "m1"
exactly_once = true

[inputs.access]
type = "tail"
paths = ["access.log"]
topic = "access"
headers = ["host", "path", "offset", "input"]
"""


@pytest.fixture(scope="module")
def agent(node: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A real one, at work on a file; where it answers and which file that is."""
    folder = tmp_path_factory.mktemp("agent")
    (folder / "agent.toml").write_text(FILE.format(bootstrap=node.bootstrap_servers))
    (folder / "access.log").write_text("".join(f"line {number}\n" for number in range(5)))
    command = [str(Path(sys.executable).parent / "penstock"), "agent", "run", "-c", "agent.toml", "--quiet"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        presence = wait_for("the agent", lambda: find(folder / "state"), timeout_s=30)
        yield f"http://{presence.admin}", folder / "access.log"
    finally:
        process.terminate()
        process.wait(within(20))


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, agent: tuple[str, Path]) -> Iterator[RunningConsole]:
    with running(settings_for(node.client_settings, agents=(agent[0], NOBODY))) as found:
        yield found


def test_an_agent_says_how_far_its_files_are_read(console: RunningConsole, agent: tuple[str, Path]) -> None:
    address, file = agent

    def all_read(told: dict[str, Any]) -> bool:
        files = told["items"][0]["files"]
        return bool(files) and files[0]["behind"] == "0"

    told = console.wait("agents", all_read)
    row, silent = told["items"]
    assert (row["name"], row["address"], row["state"], row["behind"], row["exactly_once"]) == (
        "web", address, "running", "0", True,
    )  # fmt: skip
    assert [(each["name"], each["type"], each["events"], each["error"]) for each in row["inputs"]] == [
        ("access", "tail", "5", None)
    ]
    size = str(file.stat().st_size)
    assert [(each["path"], each["position"], each["size"]) for each in row["files"]] == [(str(file), size, size)]
    assert (silent["state"], silent["address"]) == ("silent", NOBODY)
    assert "no agent answers" in silent["error"]


def test_a_line_is_followed_to_its_file(console: RunningConsole, agent: tuple[str, Path]) -> None:
    console.wait("topics", lambda told: "access" in [row["name"] for row in told["items"]])
    told = console.wait(
        "follow", lambda told: told["steps"][0]["kind"] == "file", topic="access", partition=0, offset=1
    )
    assert told["steps"][0]["text"].startswith(f"a line of {agent[1]}, byte 7 on ")
    assert told["steps"][1]["params"]["offset"] == "1"


def test_an_agent_that_nobody_named_is_known_by_its_positions(node: EmbeddedBroker, agent: tuple[str, Path]) -> None:
    with running(settings_for(node.client_settings)) as other:
        told = other.wait("agents", lambda told: told["items"] and told["items"][0]["files"])
    assert [(row["name"], row["machine"], row["state"]) for row in told["items"]] == [("web", "m1", "positions")]
    file = told["items"][0]["files"][0]
    assert (file["path"], file["position"]) == (str(agent[1]), str(agent[1].stat().st_size))
