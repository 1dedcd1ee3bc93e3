"""A reader at a terminal: runs the commands of a page in order, in a folder of their own, on ports of their own.

The pages say 9092, 9093 and 9644 and /var/lib/penstock, as a reader would have it. Here commands and files are given
free ports and a temporary folder instead, and what they print is translated back. A page may speak of three hosts,
10.0.0.1 and so on: their blocks are labelled on-1, on-2 and on-3, their nodes run side by side, and are waited for when
somebody who is on none of them runs the next command. An agent runs beside the node until the page starts another, so
does a console, an object store until the page ends.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.cli import warm
from tests.cli.command import DEADLINE_S, QUICK_JAVA
from tests.compat.processes import Child, free_ports, wait_for
from tests.docs.pages import Step, matches
from tests.patience import within

SERVERS = ("penstock dev", "penstock server start")
AGENTS = ("penstock agent run",)
STORES = ("python -m moto.server",)
CONSOLES = ("penstock console",)
CONSOLE_PORT = "8080"
STORE_PORT = "9000"
AGENT_PORTS = ("9645", "5514", "6514", "8089", "5170")
NO_SERVERS = ("penstock dev kill", "penstock dev start", "penstock dev stop")
SERVER_PORTS = ("9092", "9093", "9644")
ADMIN_STEP = 552
NODES = 4
PORTS = range(13_000, 20_000)
"""Where neither clusters that choose for themselves nor outgoing connections have theirs. Each process of the suite has
a part of its own: a page takes its port some seconds after it was found to be free."""
HOSTS = ("on-1", "on-2", "on-3")
FOLDER = "/var/lib/penstock"


class Reader:
    """One session; use it as a context manager, so that its node is stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port = free_port()
        # All at once, so that they are all different: what is printed is translated back.
        ports = free_ports(3 * len(HOSTS) + len(AGENT_PORTS) + 2)
        self._words = {
            f"10.0.0.{host}:{name}": f"127.0.0.1:{ports.pop()}"
            for host in range(1, len(HOSTS) + 1)
            for name in SERVER_PORTS
        } | {
            "9092": str(port),
            "9644": str(port + ADMIN_STEP),
            "9093": str(port + 2 * ADMIN_STEP),
            STORE_PORT: str(ports.pop()),
            CONSOLE_PORT: str(ports.pop()),
            FOLDER: str(folder / "var"),
            **{there: str(here) for there, here in zip(AGENT_PORTS, ports, strict=True)},
        }
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PENSTOCK_BOOTSTRAP": f"127.0.0.1:{port}",
            "XDG_STATE_HOME": str(folder / "state"),
            # Programs that start Spark, start it quickly.
            "JDK_JAVA_OPTIONS": QUICK_JAVA,
        }
        self._quick = warm.install(folder / "quick")
        self._node: Child | None = None
        self._agent: Child | None = None
        self._store: Child | None = None
        self._console: Child | None = None
        self._hosts: dict[str, Child] = {}
        self._last_code = 0

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for node in (self._agent, self._console, self._node, self._store, *self._hosts.values()):
            if node is not None:
                node.kill()

    def write(self, name: str, text: str) -> None:
        host = re.search(r"-(\d)\.properties$", name)
        (self._folder / name).write_text(self._here(text, f"on-{host[1]}" if host else ""))

    def run(self, step: Step, host: str = "") -> None:
        command = step.command.partition("  #")[0].strip()
        if command == "echo $?":
            printed = f"{self._last_code}\n"
        elif host in HOSTS and command.startswith(SERVERS):
            printed = self._serve_on(host, command)
        elif command.startswith(SERVERS) and not command.startswith(NO_SERVERS):
            printed = self._serve(command)
        elif command.startswith(AGENTS):
            printed = self._collect(command)
        elif command.startswith(STORES):
            printed = self._keep_objects(command)
        elif command.startswith(CONSOLES):
            printed = self._show(command)
        else:
            if host not in HOSTS:
                self._meet_hosts()
            printed = self._once(command, host)
        printed = self._there(printed)
        # What servers answer to curl has no end of line, and a page has.
        printed += "\n" * (printed[-1:] not in ("", "\n"))
        assert matches(step.expected, printed), f"$ {command}\nprinted\n{printed}\nthe page says\n" + "\n".join(
            step.expected
        )

    def leave(self) -> None:
        """Stops the agent, the console and the nodes that run, which must end well."""
        self._leave_agent()
        self._leave_console()
        nodes = [node for node in (self._node, *self._hosts.values()) if node is not None]
        self._node, self._hosts = None, {}
        for node in nodes:
            os.kill(node.pid, signal.SIGTERM)
        for node in nodes:
            assert node.wait(DEADLINE_S) == 0, node.tail()

    def _leave_agent(self) -> None:
        agent, self._agent = self._agent, None
        if agent is not None:
            assert agent.stop(DEADLINE_S) == 0, agent.tail()

    def _leave_console(self) -> None:
        console, self._console = self._console, None
        if console is not None:
            assert console.stop(DEADLINE_S) == 0, console.tail()

    def _show(self, command: str) -> str:
        """Starts a console in place of the one before; answers what it said until it was ready, and saw a cluster, or
        ended."""
        self._leave_console()
        log = self._folder / "console.log"
        log.unlink(missing_ok=True)
        port = f" --port {self._words[CONSOLE_PORT]}"
        words = f"cd {self._folder} && exec {self._here(command)}{port}"
        console = self._console = Child(["bash", "-c", words], log, self._environment)
        wait_for(
            f"{command} to be ready or to end",
            lambda: not console.running() or self._sees_a_cluster(log.read_text()),
            timeout_s=DEADLINE_S,
        )
        if not console.running():
            self._last_code, self._console = console.wait(DEADLINE_S), None
        return log.read_text()

    def _sees_a_cluster(self, said: str) -> bool:
        """Pages wait for the first look by themselves; whoever reads on is as slow as a person."""
        found = re.search(r"is at (http://\S+?)/?\n", said)
        if found is None:
            return False
        with urllib.request.urlopen(f"{found[1]}/api/v1/session", timeout=within(10)) as reply:
            return all(cluster["state"] == "ok" for cluster in json.load(reply)["clusters"])

    def _collect(self, command: str) -> str:
        """Starts an agent in place of the one before; answers what it said until it was ready or ended."""
        self._leave_agent()
        log = self._folder / "agent.log"
        log.unlink(missing_ok=True)
        words = f"cd {self._folder} && exec {self._here(command)}"
        agent = self._agent = Child(["bash", "-c", words], log, self._environment)
        wait_for(
            f"{command} to be ready or to end",
            lambda: not agent.running() or " is ready: " in log.read_text(),
            timeout_s=DEADLINE_S,
        )
        if not agent.running():
            self._last_code, self._agent = agent.wait(DEADLINE_S), None
        return log.read_text()

    def _keep_objects(self, command: str) -> str:
        """An object store of others: it runs until the page ends, and nobody minds what it says."""
        log = self._folder / "store.log"
        store = self._store = Child(["bash", "-c", f"exec {self._here(command)}"], log, self._environment)
        wait_for(
            f"{command} to be ready or to end",
            lambda: not store.running() or "Running on" in log.read_text(),
            timeout_s=DEADLINE_S,
        )
        assert store.running(), store.tail()
        return ""

    def _serve_on(self, host: str, command: str) -> str:
        """A node of a cluster is not ready before the others are there, so nobody waits for it yet."""
        log = self._folder / f"{host}.log"
        words = f"cd {self._folder} && exec {self._here(command, host)}"
        self._hosts[host] = Child(["bash", "-c", words], log, self._environment)
        return ""

    def _meet_hosts(self) -> None:
        for host, node in self._hosts.items():
            wait_for(
                f"the node {host} to be ready or to end",
                lambda node=node: not node.running() or " is ready on " in node.log.read_text(),  # type: ignore[misc]
                timeout_s=DEADLINE_S,
            )
            assert node.running(), node.tail()

    def _once(self, command: str, host: str = "") -> str:
        done = subprocess.run(
            ["bash", "-c", self._here(command, host)],
            cwd=self._folder,
            env={**self._environment, "PATH": f"{self._quick}{os.pathsep}{self._environment['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A command may start Spark first.
            timeout=within(3 * DEADLINE_S),
        )
        self._last_code = done.returncode
        return done.stdout

    def _serve(self, command: str) -> str:
        """Starts a node in place of the one before; answers what it said until it was ready or ended."""
        self.leave()
        if command.startswith("penstock dev"):
            command += f" --port {self._words['9092']}"
        log = self._folder / "node.log"
        log.unlink(missing_ok=True)
        node = Child(["bash", "-c", f"cd {self._folder} && exec {self._here(command)}"], log, self._environment)
        self._node = node

        greeting = "\n  try " if command.startswith("penstock dev") else " is ready on "
        wait_for(
            f"{command} to be ready or to end",
            lambda: not node.running() or re.search(f"{greeting}.*\n", log.read_text()),
            timeout_s=DEADLINE_S,
        )
        if not node.running():
            self._last_code, self._node = node.wait(DEADLINE_S), None
        return log.read_text()

    def _here(self, text: str, host: str = "") -> str:
        if host in HOSTS:
            text = text.replace(FOLDER, f"{self._folder}/{host}/var")
        for there, here in self._words.items():
            text = text.replace(there, here)
        return text

    def _there(self, text: str) -> str:
        for host in HOSTS:
            text = text.replace(f"{self._folder}/{host}/var", FOLDER)
        for there, here in self._words.items():
            text = text.replace(here, there)
        return text


def free_port() -> int:
    """A port that is free together with those that go with it, none of which reads like another port of the pages."""
    width = 3 * ADMIN_STEP
    parts = len(PORTS) // width
    own = PORTS[_number_of_this_process() % parts * width :][: ADMIN_STEP - NODES : 7]
    for port in random.sample(own, len(own)):
        first = (port, port + ADMIN_STEP, port + 2 * ADMIN_STEP)
        needed = [each + node for each in first for node in range(NODES)]
        # 18089 would be taken for the agent's 8089, and translated.
        ambiguous = any(name in str(each) for name in (*AGENT_PORTS, *SERVER_PORTS, CONSOLE_PORT) for each in needed)
        if not ambiguous and all(_is_free(each) for each in needed):
            return port
    raise AssertionError("no free ports")


def _number_of_this_process() -> int:
    """Among those of the suite: xdist calls them gw0, gw1 and so on."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
