"""Files into a topic: prepared ones as fast as it goes, and one that grows at a rate."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.agent.contenders import AGENT, BARE, EXACTLY, ROOT, RSYSLOG, SCRIPT, Contender, Job
from bench.agent.course import Course, Ends, Sample, Watch, ages_ms, lines_of
from bench.agent.lines import prepare
from bench.brokers import Running
from penstock.bench.raw import percentile
from penstock.bench.series import Results
from penstock.blocking import Consumer
from penstock.model.ids import TopicPartition

PARTITIONS = 4
GB, MB = 1e9, 1e6
NODE = "node"


@dataclass(frozen=True)
class Shape:
    """One kind of load."""

    line_bytes: int
    parse: str
    files: int

    @property
    def name(self) -> str:
        size = f"{self.line_bytes} B" if self.line_bytes < 1_000 else f"{self.line_bytes // 1_000} KB"
        return f"{size}, {self.parse or 'raw'}, {self.files} file{'s' if self.files > 1 else ''}"


RAW = [Shape(size, "", files) for size in (200, 1_000) for files in (1, 100)]
PARSED = [Shape(size, parse, files) for parse in ("json", "access_log") for size in (200, 1_000) for files in (1, 100)]


class Tailing:
    """Measures into `results`. What is written stays until the next shape comes."""

    def __init__(
        self,
        broker: Running,
        contenders: Mapping[str, Contender],
        home: Path,
        results: Results,
        say: Callable[[str], None],
    ) -> None:
        self._broker, self._contenders, self._home, self._results, self._say = broker, contenders, home, results, say
        self._numbers = itertools.count()

    def prepared(self, shapes: Sequence[Shape], rounds: int, total_bytes: int) -> None:
        """Everything is there before anybody starts; the clock runs from the first record to the last."""
        for shape in shapes:
            folder = self._home / "lines"
            paths, lines = prepare(folder, shape.parse or "raw", shape.line_bytes, total_bytes, shape.files)
            for number, name in itertools.product(range(1, rounds + 1), self._who(shape)):
                self._say(f"round {number} of {rounds}: {shape.name} by {name}")
                self._note(name, shape, self._carry(name, shape, paths, lines))
            shutil.rmtree(folder)

    def _who(self, shape: Shape) -> Sequence[str]:
        """Parsing differs too much from one to the other; raw lines are the same for all."""
        if shape.parse:
            return [AGENT]
        return [name for name in (AGENT, EXACTLY, BARE, RSYSLOG, SCRIPT) if name in self._contenders]

    def _carry(self, name: str, shape: Shape, paths: Sequence[Path], lines: int) -> Course:
        with self.topic(committed=name == EXACTLY) as (topic, ends):
            globs = [str(path) for path in paths] if name == SCRIPT else [f"{paths[0].parent}/*.log"]
            job = Job(self._broker.bootstrap, topic, globs, shape.parse, () if name == BARE else ("host", "path"))
            home = self._home / topic
            with self._contenders[name].carrying(home, job) as child:
                watch = Watch(ends, {name: child.pid, NODE: self._broker.node.pid})
                try:
                    course = watch.until(lambda sample: sample.records >= lines, timeout_s=300)
                except AssertionError as stuck:
                    raise AssertionError(f"{stuck}\n{child.tail()}") from None
                self._check(name, topic, course, lines)
            shutil.rmtree(home)
            return course

    def _note(self, name: str, shape: Shape, course: Course) -> None:
        size = course.records * shape.line_bytes
        add = self._results.add
        group = "files into a topic" + (", parsed" if shape.parse else "")
        add(group, shape.name, "MB/s", name, size / course.seconds / MB)
        add(f"{group}: events", shape.name, "events/s", name, course.records_per_s)
        cpu_s, node_s = course.cpu_s(name) / (size / GB), course.cpu_s(NODE) / (size / GB)
        add(f"{group}: CPU of who carries", shape.name, "CPU-s/GB", name, cpu_s, higher_is_better=False)
        add(f"{group}: CPU of the node", shape.name, "CPU-s/GB", name, node_s, higher_is_better=False)
        rss_bytes = course.rss_max_bytes(name)
        add(f"{group}: memory", shape.name, "MB RSS", name, rss_bytes / MB, higher_is_better=False)

    def growing(self, name: str, line_bytes: int, bytes_per_s: float, seconds: float) -> list[Sample]:
        """A file that grows at a rate: does it keep up, how old is what has not arrived, is memory flat?"""
        file = self._home / "growing.log"
        file.write_bytes(b"")
        rate = bytes_per_s / line_bytes
        with self.topic(committed=name == EXACTLY) as (topic, ends):
            home = self._home / topic
            job = Job(self._broker.bootstrap, topic, [str(file)])
            with (
                self._contenders[name].carrying(home, job) as child,
                writing(file, line_bytes, [(rate, seconds)]) as writer,
            ):
                watch = Watch(
                    ends,
                    {name: child.pid, NODE: self._broker.node.pid},
                    lambda: {"written": lines_of(file, line_bytes)},
                )

                def all_there(sample: Sample) -> bool:
                    return writer.poll() is not None and sample.records >= lines_of(file, line_bytes)

                try:
                    course = watch.until(all_there, timeout_s=seconds * 4 + 60, every_s=0.02)
                except AssertionError as stuck:
                    raise AssertionError(f"{stuck}\n{child.tail()}") from None
                lines = lines_of(file, line_bytes)
                self._check(name, topic, course, lines)
        file.unlink()
        ages = ages_ms(course.samples, "written")
        group, size = f"one file that grows at {bytes_per_s / MB:.0f} MB/s for {seconds:.0f} s", lines * line_bytes
        add = self._results.add
        for share in (0.5, 0.99):
            label = f"oldest line not yet acknowledged, p{share * 100:.0f}"
            add(group, label, "ms", name, percentile(ages, share), higher_is_better=False)
        add(group, "its CPU", "CPU-s/GB", name, course.cpu_s(name) / (size / GB), higher_is_better=False)
        add(group, "memory, highest", "MB RSS", name, course.rss_max_bytes(name) / MB, higher_is_better=False)
        add(
            group, "memory, last third over second", "×", name, course.rss_late_over_early(name), higher_is_better=False
        )
        return course.samples

    def _check(self, name: str, topic: str, course: Course, lines: int) -> None:
        """Every line is there once."""
        found = course.samples[-1].records
        if name == EXACTLY:
            # Ends of logs count markers too; records are counted by reading them.
            found = count_committed(self._broker.bootstrap, topic, lines)
        assert found == lines, f"{found:,} records of {lines:,} lines"

    @contextmanager
    def topic(self, *, committed: bool = False) -> Iterator[tuple[str, Ends]]:
        name = f"lines-{next(self._numbers)}"
        self._broker.new_topic(name, PARTITIONS)
        ends = Ends(self._broker.bootstrap, name, PARTITIONS, committed=committed)
        try:
            yield name, ends
        finally:
            ends.close()
            self._broker.drop_topic(name)


def count_committed(bootstrap: str, topic: str, wanted: int, within_s: float = 60.0) -> int:
    """Records that readers of committed records see: as many as are wanted, and what is there beyond that."""
    places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    settings = {"isolation_level": "read_committed", "offset_reset": "earliest"}
    found, deadline = 0, time.monotonic() + within_s
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.assign(places)
        while True:
            batches = consumer.poll_arrow(timeout_ms=500)
            found += sum(batch.num_rows for batch in batches)
            if not batches and (found >= wanted or time.monotonic() > deadline):
                return found


@contextmanager
def writing(path: Path, line_bytes: int, schedule: Sequence[tuple[float, float]]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that appends to a file while the block runs."""
    words = ",".join(f"{rate}:{seconds}" for rate, seconds in schedule)
    command = [sys.executable, "-m", "bench.agent.writer", str(path), str(line_bytes), words]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
