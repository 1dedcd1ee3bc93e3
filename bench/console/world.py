"""A console beside 200 brokers, 10,000 topics with 40,000 partitions and 2,000 groups that are answered for."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from bench.console.found import Figure, bound
from bench.console.looking import MeasuredConsole, console
from tests.console.large.world import BROKERS, GROUPS, TOPICS, group_name, topic_name

ROUNDS = 9
PAGES = {
    "topics, sorted by rate": ("topics", {"sort": "rate", "desc": "1"}),
    "topics, filtered": ("topics", {"q": "topic-09999"}),
    "groups, sorted by lag": ("groups", {"sort": "lag", "desc": "1"}),
    "a topic": (f"topics/{topic_name(4_711)}", {}),
    "who reads a topic": (f"topics/{topic_name(4_711)}/consumers", {}),
    "a group": (f"groups/{group_name(7)}", {}),
    "brokers": ("brokers", {}),
    "the map of all partitions": ("map", {}),
}


@contextmanager
def served() -> Iterator[str]:
    """The address of its first broker."""
    command = [sys.executable, "-m", "tests.console.large.serving"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        try:
            yield f"127.0.1.1:{serving.stdout.readline().strip()}"
        finally:
            serving.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                serving.wait(20)
            serving.kill()


def measure(seconds: float, say: Callable[[str], None]) -> list[Figure]:
    with served() as bootstrap, console(bootstrap) as looked:
        began = time.monotonic()
        looked.wait("overview", lambda told: told["cluster"]["topics"] == TOPICS)
        usable_s = time.monotonic() - began
        looked.wait("groups", lambda told: told["total"] == GROUPS and told["items"][0]["lag"] is not None)
        looked.wait(
            "topics", lambda told: told["items"][0]["bytes"] is not None and told["items"][0]["rate"] is not None
        )
        say(f"{BROKERS} brokers are looked at; all is known after {time.monotonic() - began:.0f} s")
        first = [looked.first_page_ms() for _ in range(ROUNDS)]
        pages = {name: [looked.took_ms(path, **query) for _ in range(ROUNDS)] for name, (path, query) in PAGES.items()}
        # What a first look compiles and what browsers asked for is over; now it only looks on.
        looked.costs()
        say(f"now it is looked on for {seconds:.0f} s")
        return [
            Figure("from the start of its process until the overview is there", f"{usable_s:.1f} s"),
            bound("the first page: shell, session, overview", median(first), 1_000, "ms", 0),
            Figure("the same, the slowest of nine", f"{max(first):.0f} ms"),
            *(Figure(name, f"{median(times):.0f} ms") for name, times in pages.items()),
            *_looking_on(looked, seconds),
        ]


def _looking_on(looked: MeasuredConsole, seconds: float) -> list[Figure]:
    with looked.looked_at():
        before = looked.costs()
        time.sleep(seconds)
        after = looked.costs()
    took = after["at_s"] - before["at_s"]
    whole = (after["cpu_s"] - before["cpu_s"]) / took * 100
    sampler = (after["sampler_cpu_s"] - before["sampler_cpu_s"]) / took * 100
    ages = {part: looked.get(path)["age_ms"] for part, path in (("groups", "groups"), ("offsets", "topics"))}
    return [
        bound("the sampler, of a core", sampler, 5, "%"),
        Figure("the whole process with a tab that shows overview and topics, of a core", f"{whole:.1f} %"),
        bound("the longest that the loop of browsers was held", after["worst_ms"], 20, "ms"),
        Figure("how often it was held longer than 20 ms", f"{after['long']} times of {after['beats']:,} beats"),
        Figure("how old lags were at the end", f"{ages['groups'] / 1_000:.0f} s"),
        Figure("how old offsets and rates were", f"{ages['offsets'] / 1_000:.0f} s"),
        Figure("memory of the process", f"{after['rss_mb']:.0f} MB"),
    ]
