"""Where the agent's time goes: it runs under Python's profiler while it reads prepared lines."""

from __future__ import annotations

import pstats
import sys
from pathlib import Path

from bench.agent.contenders import Agent, Job
from bench.agent.course import Watch
from bench.agent.lines import prepare
from bench.agent.tailing import Tailing
from bench.brokers import Running

ROWS = 16
# What an agent does once, when it starts and loads its code, and what is no work at all.
STARTING = ("importlib", "marshal", "builtins.compile", "builtins.exec", "_imp.", "open_code", "namedtuple", "enum.py")
WAITING = ("run_forever", "run_until_complete", "poll", "runners.py", "threading.py", "acquire")


def profile_lines(broker: Running, tailing: Tailing, home: Path, total_bytes: int) -> list[str]:
    """A table for the page: the functions in which an agent spends most of its time, 200 B lines as they are."""
    paths, lines = prepare(home / "profiled", "raw", 200, total_bytes, 1)
    out = home / "agent.profile"
    command = (sys.executable, "-m", "cProfile", "-o", str(out), "-m", "penstock.cli.main")
    with tailing.topic() as (topic, ends):
        job = Job(broker.bootstrap, topic, [str(path) for path in paths], command=command)
        with Agent().carrying(home / topic, job) as child:
            watch = Watch(ends, {"agent": child.pid})
            watch.until(lambda sample: sample.records >= lines, timeout_s=120)
            child.stop()
    stats = pstats.Stats(str(out))
    rows = [
        (own_s, calls, f"{Path(file).name}:{line} {name}" if line else name)
        for (file, line, name), (_primitive, calls, own_s, _total, _callers) in stats.stats.items()  # type: ignore[attr-defined]
    ]
    rows = [row for row in rows if not any(word in row[2] for word in (*STARTING, *WAITING))]
    busy_s = sum(own_s for own_s, _, _ in rows)
    table = ["| share | calls | function |", "|--:|--:|---|"]
    for own_s, calls, where in sorted(rows, reverse=True)[:ROWS]:
        table.append(f"| {own_s / busy_s:.1%} | {calls:,} | `{where}` |")
    return table
