"""What ten thousand files cost that nobody writes to."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from bench.agent.contenders import Contender, Job
from bench.agent.course import Used, Watch
from bench.agent.lines import make_block
from bench.agent.tailing import MB, Tailing
from bench.brokers import Running
from bench.series import Results

LINES_EACH = 5
LINE_BYTES = 200
SETTLE_S = 10.0
"""Long enough for any rhythm of looking to have become its slowest."""


def quiet_files(
    broker: Running, contenders: Mapping[str, Contender], tailing: Tailing, home: Path, results: Results,
    files: int, idle_s: float, say: Callable[[str], None],
) -> None:  # fmt: skip
    folder = home / "quiet"
    folder.mkdir()
    block = make_block("numbered", LINE_BYTES, files * LINES_EACH * LINE_BYTES)
    each = LINES_EACH * LINE_BYTES
    for number in range(files):
        (folder / f"{number:06d}.log").write_bytes(block[number * each : (number + 1) * each])
    group = f"{files:,} quiet files"
    for name, contender in contenders.items():
        say(f"{group} by {name}")
        with tailing.topic() as (topic, ends):
            job = Job(broker.bootstrap, topic, [f"{folder}/*.log"])
            began = time.perf_counter()
            with contender.carrying(home / topic, job) as child:
                watch = Watch(ends, {name: child.pid})
                try:
                    watch.until(lambda sample: sample.records >= files * LINES_EACH, timeout_s=120)
                except AssertionError as stuck:
                    raise AssertionError(f"{stuck}\n{child.tail()}") from None
                read_s = time.perf_counter() - began
                time.sleep(SETTLE_S)
                before = Used.by(child.pid)
                time.sleep(idle_s)
                after = Used.by(child.pid)
                opened = psutil.Process(child.pid).num_fds()
                add = results.add
                add(
                    group,
                    f"from start until all {LINES_EACH} lines of each are there",
                    "s",
                    name,
                    read_s,
                    higher_is_better=False,
                )
                share = (after.cpu_s - before.cpu_s) / idle_s * 100
                add(group, "CPU afterwards", "% of a core", name, share, higher_is_better=False)
                add(group, "memory afterwards", "MB RSS", name, after.rss_bytes / MB, higher_is_better=False)
                add(group, "open descriptors", "", name, opened, higher_is_better=False)
                assert ends.records() == files * LINES_EACH, "quiet files were read twice"
            shutil.rmtree(home / topic)
    shutil.rmtree(folder)
