"""What a real node of 10,000 partitions and 200 groups gives for being looked at."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.console.found import Figure, bound
from bench.console.looking import console
from bench.scale.subject import Subject, allow_many_files
from penstock.blocking import Admin
from penstock.model.ids import TopicPartition

TOPICS, PARTITIONS, GROUPS = 2_500, 4, 200


def measure(seconds: float, say: Callable[[str], None]) -> list[Figure]:
    allow_many_files()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        subject = Subject(Path(home))
        subject.begin()
        try:
            return _measure(subject, seconds, say)
        finally:
            subject.node.kill()


def _measure(subject: Subject, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    subject.create({f"topic-{number:05d}": PARTITIONS for number in range(TOPICS)})
    with Admin(bootstrap_servers=subject.bootstrap) as admin:
        for number in range(GROUPS):
            positions = {TopicPartition(f"topic-{number:05d}", index): 0 for index in range(PARTITIONS)}
            admin.alter_group_offsets(f"group-{number}", positions).checked()
    subject.settle()
    say(f"a node with {TOPICS * PARTITIONS:,} partitions stands")
    alone = subject.idle_percent(seconds)
    with console(subject.bootstrap) as looked:
        looked.wait("topics", lambda told: told["total"] >= TOPICS and told["items"][0]["bytes"] is not None)
        looked.wait("groups", lambda told: told["total"] == GROUPS and told["items"][0]["lag"] is not None)
        with looked.looked_at():
            time.sleep(5)
            beside = subject.idle_percent(seconds)
            costs = looked.costs()
    return [
        Figure("the node, while nobody asks it anything, of a core", f"{alone:.2f} %"),
        Figure("the same, looked at by a console", f"{beside:.2f} %"),
        bound("what the console costs it, of a core", beside - alone, 3, "%", 2),
        Figure("memory of the console", f"{costs['rss_mb']:.0f} MB"),
    ]
