"""Whoever follows a topic of 100,000 records a second slows down nobody who works with the cluster.

`make soak PART=console`, on a machine with nothing else to do: node, load, console and clock are processes that share
its cores, and what is compared are waits of milliseconds. What was measured is printed.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from penstock.blocking import Admin, Producer
from tests.console.running import RunningConsole
from tests.patience import wait_for, within

pytestmark = pytest.mark.soak

RATE = 100_000
RATE_MIN = 0.9
TAILS = 3
ROUNDS = 4
ROUND_S = 8.0
PINGS_S = 200
TIMES_MAX = 1.2
NOISE_MS = 1.0
"""Below this a difference is the clock's and not a tail's."""
NODE = (
    "import sys\nfrom penstock.testing import broker\nwith broker() as node:\n"
    "  print(node.bootstrap_servers, flush=True)\n  sys.stdin.read()"
)


@contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that ends with its input."""
    with subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        try:
            yield running
        finally:
            running.stdin.close()
            running.wait(within(30))


def said(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def waits_ms(producer: Producer) -> list[float]:
    """How long single records of somebody else take, until they are acknowledged, at a steady beat."""
    waits, began = [], time.monotonic()
    for number in range(round(ROUND_S * PINGS_S)):
        time.sleep(max(began + number / PINGS_S - time.monotonic(), 0))  # a beat, not a wait for something
        at = time.monotonic()
        producer.send("pings", b"ping").result()
        waits.append((time.monotonic() - at) * 1_000)
    return waits


def p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]


@contextmanager
def followed(console: RunningConsole, number: int) -> Iterator[list[dict[str, Any]]]:
    """A tail of the busy topic; the last that it told stands in the list."""
    name, last = f"a-tab-that-follows-{number:04}", list[dict[str, Any]]()
    began = threading.Event()

    def listen() -> None:
        with console.events(name) as events:
            for event, data in events:
                if event == "hello":
                    began.set()
                elif event == "tail":
                    last[:] = [data]
                elif event == "bye":
                    return

    listening = threading.Thread(target=listen)
    listening.start()
    assert began.wait(within(30))
    console.send("POST", f"tabs/{name}/subscriptions", {"kind": "tail", "topic": "busy"})
    try:
        yield last
    finally:
        # The same tab once more: the stream of before is told good-bye, and its tail ends with it.
        with console.events(name) as events:
            next(events)
        listening.join(within(30))


def test_a_tail_of_a_busy_topic_costs_others_nothing() -> None:
    with ExitStack() as stack:
        node = stack.enter_context(process("-c", NODE))
        bootstrap = said(node)
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topic("busy", 4, 1, {"retention.bytes": str(64 << 20), "segment.bytes": str(16 << 20)})
            admin.create_topic("pings", 1, 1)
        words = ("-m", "penstock.cli.main", "console", "--port", "0", "--while-input", "-b", bootstrap)
        address = re.search(r"http://\S+", said(stack.enter_context(process(*words))))
        assert address is not None
        client = stack.enter_context(httpx.Client(base_url=address[0], timeout=within(30)))
        console = RunningConsole(address[0], client)
        loading = stack.enter_context(process("-m", "tests.console.large.loading", bootstrap, "busy", str(RATE)))
        producer = stack.enter_context(Producer(bootstrap_servers=bootstrap, linger_ms=0))
        producer.send("pings", b"first").result()
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(ROUNDS):
            alone.append(p99(waits_ms(producer)))
            with ExitStack() as tails:
                told = [tails.enter_context(followed(console, number)) for number in range(TAILS)]
                wait_for("tails to show something", lambda told=told: all(map(shows, told)), timeout_s=30)
                beside.append(p99(waits_ms(producer)))
                rates = [round(each[0]["per_s"]) for each in told]
                assert all(int(each[0]["skipped"]) > 0 for each in told), "nobody reads 100,000 a second"
        assert loading.stdin is not None
        loading.stdin.close()
        rate = int(said(loading))
    before, after = statistics.median(alone), statistics.median(beside)
    print(
        f"\n{rate} records/s; {TAILS} tails that told {rates}/s;"
        f" p99 of others {before:.1f} ms alone, {after:.1f} ms beside"
    )
    assert rate >= RATE * RATE_MIN, "this machine is too busy to be measured on"
    assert after <= before * TIMES_MAX + NOISE_MS


def shows(told: list[dict[str, str]]) -> bool:
    return bool(told) and int(told[0]["shown"]) > 0
