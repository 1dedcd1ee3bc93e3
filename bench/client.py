"""The suite `client`: our Producer and Consumer beside other clients of Python, and what groups cost the broker.

`python -m bench.client` prints ratios of one run and writes docs/benchmarks/client.md; `--quick` is a look of a minute.
Parts: produce, consume (one Penstock node, rounds go from client to client), heartbeats, groups, command, example.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from bench import brokers, machine, places
from bench.brokers import PENSTOCK_NODE, Running
from bench.client_runs import CONSUME, PARTITIONS, PRODUCE
from bench.group_load import classic_heartbeat, commit_for_groups, consumer_heartbeat, heartbeat_cost
from penstock.bench import raw, report
from penstock.bench.series import Results
from tests.compat.judged import PENSTOCK
from tests.compat.wire import Connection

PARTS = ("produce", "consume", "heartbeats", "groups", "command", "example")
CLIENTS = {
    PENSTOCK_NODE: "Penstock",
    "confluent": "confluent-kafka",
    "kafka-python": "kafka-python",
    "aiokafka": "aiokafka",
}
RIVAL = "confluent"
SIZES = (100, 1_000)
EXAMPLE = places.ROOT / "examples" / "coffee_shop"


@dataclass(frozen=True)
class Settings:
    """How long and how much. The defaults stay under ten minutes on two cores."""

    rounds: int = 3
    run_s: float = 2.0
    stored_bytes: int = 300_000_000
    heartbeats: int = 20_000
    groups: int = 10_000
    idle_s: float = 10.0

    def quick(self) -> Settings:
        return Settings(rounds=1, run_s=0.5, stored_bytes=40_000_000, heartbeats=2_000, groups=500, idle_s=2.0)


class Suite:
    """Measures into `results`; each part may be run alone."""

    def __init__(self, settings: Settings, clients: Sequence[str], say: Callable[[str], None]) -> None:
        self.settings = settings
        self.clients = [client for client in CLIENTS if client in clients]
        self.results = Results(ours=PENSTOCK_NODE, rival=RIVAL)
        self._say = say
        self._topics = (f"bench-{number}" for number in itertools.count())

    # --- clients ---

    def produce(self, broker: Running) -> None:
        for number in range(1, self.settings.rounds + 1):
            for record_bytes, way in itertools.product(SIZES, PRODUCE):
                self._say(f"round {number} of {self.settings.rounds}: produce {size_name(record_bytes)} {way}")
                for client in self.clients:
                    if client in PRODUCE[way]:
                        # A topic for each, so that nobody pays for what another one wrote.
                        with self._topic(broker) as topic:
                            self._run(broker, "produce", client, way, topic, record_bytes, 0)

    def consume(self, broker: Running) -> None:
        for record_bytes in SIZES:
            with self._topic(broker) as topic:
                records = self._fill(broker, topic, record_bytes)
                for number, way in itertools.product(range(1, self.settings.rounds + 1), CONSUME):
                    self._say(f"round {number} of {self.settings.rounds}: consume {size_name(record_bytes)} {way}")
                    for client in self.clients:
                        if client in CONSUME[way]:
                            self._run(broker, "consume", client, way, topic, record_bytes, records)

    def _fill(self, broker: Running, topic: str, record_bytes: int) -> int:
        """How many records the topic holds at least, spread over its partitions."""
        batch, records = raw.make_batch(record_bytes, 64_000, "none")
        load = raw.produce_load(
            broker.bootstrap,
            topic,
            batch,
            records,
            acks=1,
            seconds=60,
            bytes_max=self.settings.stored_bytes,
            lanes=PARTITIONS,
        )
        # A client takes its first records before its clock starts.
        return int(load.records * 0.9)

    def _run(
        self, broker: Running, direction: str, client: str, way: str, topic: str, record_bytes: int, records: int
    ) -> None:
        command = [sys.executable, "-m", "bench.client_runs", direction, client, way, broker.bootstrap, topic]
        command += [str(record_bytes), str(self.settings.run_s), str(records)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=places.ROOT)
        if done.returncode != 0 or not done.stdout.strip():
            raise RuntimeError(f"{direction} by {client}, {way}, failed:\n{done.stdout}\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        name = f"{size_name(record_bytes)}, {way}"
        self.results.add(direction, name, "records/s", client, found["records"] / found["seconds"])
        per_million = found["cpu_s"] / found["records"] * 1e6
        group = f"{direction}, client CPU"
        self.results.add(group, name, "CPU-s/M records", client, per_million, higher_is_better=False)

    @contextmanager
    def _topic(self, broker: Running) -> Iterator[str]:
        topic = next(self._topics)
        broker.new_topic(topic, PARTITIONS)
        try:
            yield topic
        finally:
            broker.drop_topic(topic)

    # --- what groups cost the broker ---

    def heartbeats(self, broker: Running) -> None:
        with self._topic(broker) as topic:
            for number in range(1, self.settings.rounds + 1):
                # Groups of their own for each round: a member that has just gone would hold up a join.
                kinds: dict[str, tuple[str, Callable[[Connection, str], bytes]]] = {
                    "Heartbeat": (f"classic-{number}", classic_heartbeat),
                    "ConsumerGroupHeartbeat": (f"consumer-{number}", lambda *to: consumer_heartbeat(*to, topic)),
                }
                for name, (group, join) in kinds.items():
                    self._say(f"round {number} of {self.settings.rounds}: {name}")
                    cost = heartbeat_cost(broker, group, join, self.settings.heartbeats)
                    self._ours("groups", f"{name}, broker CPU", "µs each", cost.cpu_us)
                    self._ours("groups", f"{name}, one connection", "requests/s", cost.requests_per_s)

    def groups(self) -> None:
        """A node of its own, so that its memory is that of the groups."""
        with brokers.running([PENSTOCK_NODE]) as (broker,):
            broker.new_topic("committed", 1)
            commit_for_groups(broker, "committed", 1)
            time.sleep(self.settings.idle_s / 4)
            before = broker.usage()
            self._say(f"{self.settings.groups:,} groups without members")
            started = time.perf_counter()
            commit_for_groups(broker, "committed", self.settings.groups)
            commit_s = time.perf_counter() - started
            time.sleep(self.settings.idle_s / 4)
            usage = broker.usage()
            time.sleep(self.settings.idle_s)
            idle_share = (broker.usage().cpu_s - usage.cpu_s) / self.settings.idle_s * 100
            title = f"{self.settings.groups:,} groups without members"
            self._ours(title, "memory that they add", "MB RSS", (usage.rss_bytes - before.rss_bytes) / 1e6)
            self._ours(title, "idle CPU", "% of a core", idle_share)
            self._ours(title, "committing an offset for each", "s", commit_s)

    # --- what users wait for ---

    def command(self) -> None:
        """From starting `penstock topic list` to the first byte that a broker hears of it."""
        for number in range(1, self.settings.rounds * 3 + 1):
            self._say(f"penstock topic list, {number}")
            self._ours("command line", "penstock topic list, to its first byte", "ms", first_byte_ms())

    def example(self) -> None:
        """The tests of the example project, which start brokers of their own."""
        self._say("tests of the example project")
        environment = {**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "."], cwd=EXAMPLE, env=environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"the tests of the example project failed:\n{done.stdout}\n{done.stderr}")
        self._ours("example project", "its tests", "s", time.perf_counter() - started)

    def _ours(self, group: str, name: str, unit: str, value: float) -> None:
        self.results.add(group, name, unit, PENSTOCK_NODE, value, higher_is_better=unit.endswith("/s"))


def size_name(record_bytes: int) -> str:
    return f"{record_bytes} B" if record_bytes < 1_000 else f"{record_bytes // 1_000} KB"


def first_byte_ms() -> float:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        started = time.perf_counter()
        child = subprocess.Popen(
            [PENSTOCK, "topic", "list", "-b", address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            listening.settimeout(30)
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(30)
                assert connection.recv(1), "the command connected and said nothing"
                return (time.perf_counter() - started) * 1000
        finally:
            child.kill()
            child.wait()


INTRODUCTION = (
    "All figures are of one run against one Penstock node on the same machine, with client and node sharing its cores.",
    "A ratio above 1 means that Penstock's client is ahead of confluent-kafka, which is librdkafka, a library in C.",
    "",
    "- Every producer has acks=all, idempotence, 5 ms of linger and batches of 256 KiB; values without keys, a topic",
    "  of four partitions. A figure ends when everything is acknowledged.",
    "- Every consumer reads the four partitions from the start without a group and checks checksums.",
    "- One by one: `send`, `produce`, `send`, `send`; `async for`, `poll`, `for`, `async for`. In batches:",
    "  `send_batch`, `produce_batch`, none, `create_batch` with `send_batch`; `poll`, `consume`, `poll`, `getmany`.",
    "  Arrow: `send_arrow` and `poll_arrow`, which the others do not have.",
    "- Client CPU is that of the client's whole process, threads included; what the node used is not in it.",
    "- Heartbeats are sent by a raw loader over one connection, eight in flight, and the node's CPU time is divided by",
    "  their number.",
    "- Where the client's time goes (cProfile, batches of 256 KiB). Produce one by one, 100 B: 73 % the caller's",
    "  loop with the compiled `send`, 5 % writes to the socket; 1 KB: 24 % `send`, 25 % the event loop, mostly",
    "  waiting for the node, 8 % writes, 3 % sealing batches: there the node and the two cores that it shares set",
    "  the pace. Consume with `poll`, 100 B: 36 % the event loop and reads from the socket, 24 % decoding, 3 %",
    "  checksums; 1 KB: 38, 13 and 4 %.",
)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round; figures only to see that it works")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 3)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--clients", default=",".join(CLIENTS), help="which of " + ", ".join(CLIENTS))
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    parts = given.parts.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    settings = Settings().quick() if given.quick else Settings()
    if given.rounds:
        settings = Settings(**{**asdict(settings), "rounds": given.rounds})
    began = time.monotonic()
    suite = Suite(
        settings,
        given.clients.split(","),
        lambda text: print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True),
    )
    shared = {"produce": suite.produce, "consume": suite.consume, "heartbeats": suite.heartbeats}
    if set(parts) & set(shared):
        with brokers.running([PENSTOCK_NODE]) as (broker,):
            for part, measure in shared.items():
                if part in parts:
                    measure(broker)
    for part, alone in (("groups", suite.groups), ("command", suite.command), ("example", suite.example)):
        if part in parts:
            alone()
    print(report.terminal(suite.results, CLIENTS))
    facts = machine.describe([PENSTOCK_NODE])
    facts.update({name: metadata.version(name) for name in ("confluent-kafka", "kafka-python", "aiokafka")})
    page = report.Page(
        suite="client",
        title="The client library beside others",
        command="make bench SUITE=client",
        introduction=INTRODUCTION,
        machine=facts,
        parameters={name.replace("_", " "): value for name, value in asdict(settings).items()},
        remarks=[],
        titles=CLIENTS,
    )
    written = places.write(page, suite.results, publish=not given.no_page)
    print("\nwritten: " + ", ".join(str(path.relative_to(Path.cwd())) for path in written))
    print(f"took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
