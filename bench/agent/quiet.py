"""What ten thousand files cost that nobody writes to."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.agent.contenders import AGENT, Contender, Job
from bench.agent.course import Course, Used, Watch
from bench.agent.lines import make_block
from bench.agent.tailing import MB, Tailing
from bench.brokers import Running
from penstock.bench.series import Results

LINES_EACH = 5
LINE_BYTES = 200
STUCK_S = 8.0
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
            with contender.carrying(home / topic, job) as child:
                watch = Watch(ends, {name: child.pid})
                course = watch.until(
                    lambda sample: sample.records >= files * LINES_EACH or _stuck(watch),  # noqa: B023
                    timeout_s=180,
                )
                _note(results, group, name, course, files)
                time.sleep(SETTLE_S)
                before = Used.by(child.pid)
                time.sleep(idle_s)
                after = Used.by(child.pid)
                share = (after.cpu_s - before.cpu_s) / idle_s * 100
                add = results.add
                add(group, "CPU afterwards", "% of a core", name, share, higher_is_better=False)
                add(group, "memory afterwards", "MB RSS", name, after.rss_bytes / MB, higher_is_better=False)
                opened = len(list(Path(f"/proc/{child.pid}/fd").iterdir()))
                add(group, "open descriptors", "number", name, opened, higher_is_better=False)
                assert name != AGENT or ends.records() == files * LINES_EACH, f"not each line once\n{child.tail()}"
            shutil.rmtree(home / topic)
    shutil.rmtree(folder)


def _note(results: Results, group: str, name: str, course: Course, files: int) -> None:
    """How long it took until as many were there as ever came: rsyslog opens each file twice, and has a limit there."""
    came = course.samples[-1].records
    read_s = next(sample.at_s for sample in course.samples if sample.records == came)
    label = f"from start until all {LINES_EACH} lines of each are there"
    results.add(group, label, "s", name, read_s, higher_is_better=False)
    results.add(group, "lines that came", "%", name, 100 * came / (files * LINES_EACH))


def _stuck(watch: Watch) -> bool:
    """Nothing has come for a while, and something did before."""
    last = watch.samples[-1]
    since_s = next(sample.at_s for sample in watch.samples if sample.records == last.records)
    return last.records > 0 and last.at_s - since_s > STUCK_S
