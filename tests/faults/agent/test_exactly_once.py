"""Killed, stopped, replaced and cut off at every step of its transactions: a line is committed exactly once."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from penstock.agent.agent import Agent
from penstock.agent.settings import read_agent
from penstock.cli.failures import FENCED
from penstock.client.admin import Admin
from penstock.testing import EmbeddedBroker, broker, cluster
from tests.faults.agent.run_agent import STEPS
from tests.faults.agent.tailing import append, numbered
from tests.faults.counts import SOAKING, rounds
from tests.patience import Patience, until, wait_for, within
from tests.walks.agent.scene import committed_values, running

AGENT_FILE = """
name = "{name}"
bootstrap = "{bootstrap}"
state_dir = "{state}"
admin = "off"
exactly_once = true
machine_id = "this-one"
[output]
linger = "1ms"
flush_within = "20s"
{output}
[inputs.app]
type = "tail"
paths = ["{paths}"]
topic = "{name}"
poll_min = "5ms"
discover = "50ms"
rotate_wait = "200ms"
read_bytes = 8192
{more}
"""


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 1}) as running:
        yield running


class Scene:
    """A log that is written and rotated, and an agent that follows it in process after process."""

    def __init__(self, folder: Path, bootstrap: str, name: str, *, output: str = "", more: str = "") -> None:
        self.folder, self.bootstrap, self.name = folder, bootstrap, name
        self.log = folder / "logs" / "app.log"
        self.log.parent.mkdir()
        self.lines: list[bytes] = []
        self.files: list[list[bytes]] = [[]]
        """The same by the file that they were written to."""
        self._output, self._more = output, more

    def file(self, state: str = "state") -> Path:
        path = self.folder / f"{state}.toml"
        path.write_text(
            AGENT_FILE.format(
                name=self.name, bootstrap=self.bootstrap, state=self.folder / state, paths=f"{self.log}*",
                output=self._output, more=self._more,
            )
        )  # fmt: skip
        return path

    def write(self, count: int = 200) -> None:
        lines = numbered("line", len(self.lines), count)
        append(self.log, lines)
        self.lines += lines
        self.files[-1] += lines

    def rotate(self) -> None:
        os.rename(self.log, self.log.with_name(f"app.log.{len(self.files)}"))
        self.files.append([])

    def start(self, *arguments: str, state: str = "state") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.faults.agent.run_agent", str(self.file(state)), *arguments]
        return subprocess.Popen(command, stderr=subprocess.PIPE)

    async def life_until(self, agent: subprocess.Popen[bytes], code: int) -> None:
        """Writes and rotates until the agent has come to its end by itself."""
        patience, part = Patience(60), 0
        while agent.poll() is None:
            assert not patience.over(), "it never came there"
            part += 1
            self.write(50)
            if part % 7 == 0:
                self.rotate()
            await asyncio.sleep(0.03)  # the pace of the writer
        words = agent.communicate()[1]
        assert agent.returncode == code, words.decode()

    async def until_stopped(self, agent: subprocess.Popen[bytes]) -> None:
        """Writes until the agent has stopped itself."""
        patience = Patience(60)
        while "\nState:\tT" not in Path(f"/proc/{agent.pid}/status").read_text():
            assert agent.poll() is None, agent.communicate()[1].decode()
            assert not patience.over(), "it never came there"
            self.write(20)
            await asyncio.sleep(0.03)  # the pace of the writer

    async def exactly_once(self, *, state: str = "state", waiting: bool = True) -> None:
        """An agent brings the rest; then every line is there once, and none of them in another order.

        Without `waiting` it is given time to read its files to their ends only, because lines may be lost.
        """
        async with running(read_agent(self.file(state))) as agent:
            await until(lambda: agent.transactions is not None and agent.transactions.commits > 0)
            if waiting:
                await self.all_there()
            else:
                await self.all_read(agent)
        found = await committed_values(self.bootstrap, self.name, len(self.lines) if waiting else 0)
        self.check(found)

    async def all_read(self, agent: Agent) -> None:
        def is_read() -> bool:
            status = agent.status(details=True).inputs["app"].status
            return status.files == sum(map(bool, self.files)) and status.behind_bytes == 0

        await until(is_read)

    async def all_there(self) -> None:
        await committed_values(self.bootstrap, self.name, len(self.lines))

    def check(self, found: list[bytes]) -> None:
        counts, wanted = Counter(found), Counter(self.lines)
        lost, doubled = wanted - counts, counts - wanted
        assert not lost, f"{lost.total()} are lost, such as {next(iter(lost))!r}"
        assert not doubled, f"{doubled.total()} came twice, such as {next(iter(doubled))!r}"
        for lines in self.files:
            own = set(lines)
            assert [line for line in found if line in own] == lines, "lines of a file are in another order"


@pytest.mark.parametrize("step", STEPS)
async def test_kill_9_at(step: str, tmp_path: Path, node: EmbeddedBroker) -> None:
    scene = Scene(tmp_path, node.bootstrap_servers, f"kill-{step}")
    scene.write(1_000)
    for number in rounds(1, 20):
        times = 1 if step in ("began", "read") else 2 + number % 5
        await scene.life_until(scene.start(f"{step}=kill:{times}"), -signal.SIGKILL)
    await scene.exactly_once()


PLANTED = [("early", "committed", "are lost"), ("late", "committed", "came twice"), ("outside", "written", "are lost")]


@pytest.mark.parametrize(("fault", "step", "words"), PLANTED)
async def test_a_planted_fault_is_found(
    fault: str, step: str, words: str, tmp_path: Path, node: EmbeddedBroker
) -> None:
    scene = Scene(tmp_path, node.bootstrap_servers, f"plant-{fault}")
    scene.write(1_000)
    await scene.life_until(scene.start(f"plant={fault}", f"{step}=kill:6"), -signal.SIGKILL)
    with pytest.raises(AssertionError, match=words):
        await scene.exactly_once(waiting=words != "are lost")


@pytest.mark.parametrize("step", STEPS if SOAKING else ["began", "written", "committed"])
async def test_stopped_at_a_step_and_woken_when_a_successor_has_taken_over(
    step: str, tmp_path: Path, node: EmbeddedBroker
) -> None:
    """The machine was cloned, or its agent started twice: the older one ends, with a code that says not to start it."""
    scene = Scene(tmp_path, node.bootstrap_servers, f"stop-{step}")
    scene.write(1_000)
    stopped = scene.start(f"{step}=stop:{1 if step in ('began', 'read') else 3}")
    try:
        await scene.until_stopped(stopped)
        async with running(read_agent(scene.file("successor"))) as successor:
            for _ in range(2):
                scene.write(500)
                scene.rotate()
                transactions = successor.transactions
                assert transactions is not None
                before = transactions.commits
                await until(lambda transactions=transactions, before=before: transactions.commits > before)
            stopped.send_signal(signal.SIGCONT)
            await scene.life_until(stopped, FENCED)
            scene.write(100)
            await scene.all_there()
            await until(lambda: successor.status().inputs["app"].waiting_bytes == 0)
    finally:
        end(stopped)
    await scene.exactly_once(state="successor")


def end(agent: subprocess.Popen[bytes]) -> None:
    if agent.poll() is None:
        agent.send_signal(signal.SIGKILL)
    if agent.stderr is not None and not agent.stderr.closed:
        agent.communicate(timeout=within(30))


# Nodes that are killed.


async def test_the_coordinator_and_the_leaders_are_killed_in_turn(tmp_path: Path) -> None:
    """Wherever coordinator, positions and records are led, their node goes while lines are on their way."""
    with cluster(3) as nodes:
        scene = Scene(tmp_path, nodes.bootstrap_servers, "nodes")
        async with Admin(**nodes.client_settings) as admin:
            await admin.create_topic(scene.name, 1, 3)
        async with running(read_agent(scene.file())) as agent:
            for node_id in list(nodes.nodes) if SOAKING else list(nodes.nodes)[:2]:
                scene.write(500)
                await until(lambda: agent.status().inputs["app"].waiting_bytes > 0)
                await asyncio.to_thread(nodes.kill, node_id)
                for _ in range(10):
                    scene.write(100)
                    await asyncio.sleep(0.05)  # the pace of the writer
                scene.rotate()
                scene.write(100)
                await asyncio.to_thread(nodes.start, node_id)
                await asyncio.to_thread(nodes.wait_until_in_sync)
                await until(lambda: agent.status().inputs["app"].events_out == len(scene.lines))
        found = await committed_values(nodes.bootstrap_servers, scene.name, len(scene.lines))
        scene.check(found)


# The spool.

HTTP = """
[spool]
size = "50 MB"
after = "100ms"
[inputs.api]
type = "http"
listen = "127.0.0.1:{port}"
topic = "{name}-api"
"""


class Sender:
    """Sends over HTTP, one request after another, and keeps account of what was said to be safe."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.safe: list[bytes] = []
        self.doubtful: list[bytes] = []
        """No answer came: it may be there once."""

    def send(self, count: int) -> bool:
        first = len(self.safe) + len(self.doubtful)
        lines = [b'{"n":%d}' % number for number in range(first, first + count)]
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("POST", "/", b"\n".join(lines), {"Content-Type": "application/x-ndjson"})
            told = connection.getresponse().status == 200
        except OSError:
            self.doubtful += lines
            return False
        finally:
            connection.close()
        (self.safe if told else self.doubtful).extend(lines)
        return told


@pytest.mark.parametrize("step", ["filled", "written", "ending", "committed"] if SOAKING else ["written", "committed"])
async def test_kill_9_while_the_spool_is_sent(step: str, tmp_path: Path) -> None:
    with broker({"num.partitions": 1}) as node, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        name = f"spool-{step}"
        scene = Scene(tmp_path, node.bootstrap_servers, name, more=HTTP.format(port=port, name=name))
        sender = Sender(port)
        for number in rounds(1, 10):
            # The stamp is the first transaction of a life; what the spool holds comes in the next ones.
            agent = scene.start(f"{step}=kill:{3 + number % 2}")
            try:
                await asyncio.to_thread(wait_for, "it listens", lambda: listens(port), timeout_s=60)
                await asyncio.to_thread(node.stop)
                for _ in range(20):
                    await asyncio.to_thread(sender.send, 50)
                scene.write(300)
                await asyncio.to_thread(node.start)
                patience = Patience(60)
                while agent.poll() is None:
                    assert not patience.over(), "it never came there"
                    await asyncio.to_thread(sender.send, 10)
            finally:
                end(agent)
        async with running(read_agent(scene.file())) as last:
            await scene.all_there()
            await until(lambda: last.status().outlet.spool_bytes == 0 and last.status().outlet.memory_used_bytes == 0)
        scene.check(await committed_values(node.bootstrap_servers, name, len(scene.lines)))
        counts = Counter(await committed_values(node.bootstrap_servers, f"{name}-api", len(sender.safe)))
        assert {line: counts[line] for line in sender.safe if counts[line] != 1} == {}
        assert max(counts.values()) == 1
        assert set(counts) <= {*sender.safe, *sender.doubtful}


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
