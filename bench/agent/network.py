"""Syslog and HTTP into a topic: an agent that listens, and a sender on the same two cores."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.agent.contenders import AGENT, ROOT, Agent, Job
from bench.agent.course import Watch
from bench.agent.senders import EVENT_BYTES, EVENTS_A_POST
from bench.agent.tailing import GB, Tailing
from bench.brokers import Running
from penstock.bench.series import Results
from tests.compat.processes import Child, free_ports, wait_for

GROUP = "over the network"
QUIET_S = 2.0


@dataclass(frozen=True)
class Way:
    """How events are sent. A rate of 0 is as fast as they are taken."""

    name: str
    kind: str
    listen: str
    rate: int = 0
    connections: int = 4
    extra: str = ""
    """More lines for the input."""


WAYS = (
    Way("syslog UDP, 200 B, 10,000 a second offered", "udp", "udp", rate=10_000),
    Way("syslog UDP, 200 B, 50,000 a second offered", "udp", "udp", rate=50_000),
    Way("syslog TCP, 200 B, octet-counted, 4 connections", "tcp", "tcp"),
    Way(f"HTTP, NDJSON, {EVENTS_A_POST:,} events of 200 B a request, 4 connections", "ndjson", "http"),
    Way("HTTP, JSON, one event a request, 4 connections", "json", "http"),
    Way("HTTP, JSON, one event a request, 64 connections", "json", "http", connections=64),
    Way("the same, answered when taken", "json", "http", connections=64, extra='answer_when = "taken"'),
)


class Listener(Agent):
    """An agent with one network input."""

    def __init__(self, way: Way) -> None:
        self.way, self.port = way, free_ports(1)[0]

    def command(self, home: Path, job: Job) -> list[str]:
        command = super().command(home, job)
        kind = "http" if self.way.listen == "http" else "syslog"
        file = home / "agent.toml"
        (head, _, _) = file.read_text().partition("[inputs.files]")
        file.write_text(
            f'{head}[inputs.net]\ntype = "{kind}"\nlisten = "{self.way.listen}://127.0.0.1:{self.port}"\n'
            f'topic = "{job.topic}"\n{self.way.extra}\n'
        )
        return command

    def listens(self, child: Child) -> bool:
        assert child.running(), f"the agent ended:\n{child.tail()}"
        if self.way.kind == "udp":
            # Bound is bound: a second one cannot have the port.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                try:
                    other.bind(("127.0.0.1", self.port))
                except OSError:
                    return True
                return False
        with socket.socket() as other:
            return other.connect_ex(("127.0.0.1", self.port)) == 0


def network(
    broker: Running, tailing: Tailing, home: Path, results: Results, seconds: float, say: Callable[[str], None]
) -> None:
    for way in WAYS:
        say(way.name)
        listener = Listener(way)
        with (
            tailing.topic() as (topic, ends),
            listener.carrying(home / topic, Job(broker.bootstrap, topic, [])) as child,
        ):
            wait_for("the agent to listen", lambda: listener.listens(child), timeout_s=30, pause_s=0.05)  # noqa: B023
            watch = Watch(ends, {AGENT: child.pid})
            before = watch.look()
            sent = _send(way, listener.port, seconds)
            sending_s = watch.look().at_s - before.at_s
            _settle(watch, sent)
            last = watch.samples[-1]
            arrived = last.records - before.records
            took_s = max(sending_s, _last_rise_s(watch) - before.at_s)
            assert way.kind == "udp" or arrived == sent, f"{arrived:,} records of {sent:,} events\n{child.tail()}"
            add = results.add
            add(GROUP, way.name, "events/s", AGENT, arrived / took_s)
            if way.kind == "udp":
                add(GROUP, f"{way.name}: of them taken", "%", AGENT, 100 * arrived / sent)
            cpu_s = last.used[AGENT].cpu_s - before.used[AGENT].cpu_s
            per_gb = cpu_s / (arrived * EVENT_BYTES / GB)
            add("CPU of the agent, over the network", way.name, "CPU-s/GB", AGENT, per_gb, higher_is_better=False)
        shutil.rmtree(home / topic)


def _send(way: Way, port: int, seconds: float) -> int:
    command = [sys.executable, "-m", "bench.agent.senders", way.kind, f"127.0.0.1:{port}"]
    command += [str(seconds), str(way.rate), str(way.connections)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds * 4 + 60)
    if done.returncode:
        raise RuntimeError(f"the sender failed:\n{done.stderr}")
    return int(done.stdout)


def _settle(watch: Watch, sent: int) -> None:
    """Until all is there, or nothing more comes: a datagram that the kernel dropped never does."""
    start, over_s = watch.samples[0].records, watch.samples[-1].at_s
    wait_for(
        "the last records",
        lambda: watch.look().records - start >= sent or _quiet_s(watch, over_s) > QUIET_S,
        timeout_s=60,
        pause_s=0.02,
    )


def _last_rise_s(watch: Watch) -> float:
    """When the number of records last rose, as far as it was looked at."""
    last = watch.samples[-1].records
    return next(sample.at_s for sample in watch.samples if sample.records == last)


def _quiet_s(watch: Watch, over_s: float) -> float:
    """How long nothing has come, after the sending was over."""
    return watch.samples[-1].at_s - max(_last_rise_s(watch), over_s)
