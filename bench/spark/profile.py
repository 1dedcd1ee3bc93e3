"""Where a task's own time goes: our source read in a plain process under cProfile, as a worker reads it.

`python -m bench.spark.profile BOOTSTRAP TOPIC [OPTION=VALUE ...]` prints one line a function, largest first, as JSON.
What Spark does around it (handing Arrow batches to the JVM, turning them into rows) is the JVM's share of the CPU time.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
from pathlib import PurePath

SHOWN = 8


def profile(bootstrap: str, topic: str, options: dict[str, str]) -> list[tuple[str, float]]:
    """The functions with the largest time of their own, and their share of all."""
    from penstock.spark.source.data_source import TopicDataSource

    source = TopicDataSource({"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **options})
    schema = source.schema()
    reader = source.reader(schema)
    tasks = list(reader.partitions())

    def read() -> int:
        return sum(batch.num_rows for task in tasks for batch in reader.read(task))

    # The first read imports and connects; a worker does that once and reads many times.
    assert read(), "the topic holds nothing"
    profiler = cProfile.Profile()
    profiler.runcall(read)
    return _largest(pstats.Stats(profiler))


def _largest(stats: pstats.Stats) -> list[tuple[str, float]]:
    timed = {_name(where): own_s for where, (_, _, own_s, _, _) in stats.stats.items()}  # type: ignore[attr-defined]
    whole = sum(timed.values())
    ordered = sorted(timed.items(), key=lambda item: -item[1])[:SHOWN]
    return [(name, own_s / whole) for name, own_s in ordered]


def _name(where: tuple[str, int, str]) -> str:
    path, _, function = where
    return function if path == "~" else f"{PurePath(path).name}: {function}"


def main() -> None:
    bootstrap, topic, *words = sys.argv[1:]
    for name, share in profile(bootstrap, topic, dict(word.split("=", 1) for word in words)):
        print(json.dumps([name, share]))


if __name__ == "__main__":
    main()
