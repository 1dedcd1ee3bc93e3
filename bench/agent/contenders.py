"""Who carries lines into a topic: the agent, rsyslog, and a script of thirty lines as one would write it oneself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.compat.judged import PENSTOCK
from tests.compat.processes import Child

ROOT = Path(__file__).resolve().parents[2]
AGENT, EXACTLY, BARE, RSYSLOG, SCRIPT = "penstock", "exactly", "bare", "rsyslog", "script"
CACHE = ROOT / ".cache" / "rsyslog"
PACKAGES = ("rsyslog", "rsyslog-kafka", "libestr0", "libfastjson4", "liblognorm5", "librdkafka1")
LINGER_MS = 20


@dataclass(frozen=True)
class Job:
    """What is to be carried where."""

    bootstrap: str
    topic: str
    paths: Sequence[str]
    """Files, or globs."""
    parse: str = ""
    """What each line is understood as; nothing for as it is."""
    headers: Sequence[str] = ("host", "path")
    extra: str = ""
    """More lines for the agent's file."""
    command: Sequence[str] = field(default=(PENSTOCK,))


class Contender(ABC):
    """A process that carries lines, started anew for each run."""

    name: str

    @abstractmethod
    def command(self, home: Path, job: Job) -> list[str]:
        """Writes what it needs into `home`; the command that runs in the foreground."""

    def environment(self) -> dict[str, str]:
        return {}

    @contextmanager
    def carrying(self, home: Path, job: Job) -> Iterator[Child]:
        """While it runs; killed at the end, for what it still does then is no figure."""
        home.mkdir(parents=True, exist_ok=True)
        child = Child(self.command(home, job), home / f"{self.name}.log", self.environment())
        try:
            yield child
        finally:
            child.kill()


class Agent(Contender):
    """`penstock agent run` with a tail."""

    name = AGENT
    top = ""
    """More of the file, above its tables."""

    def command(self, home: Path, job: Job) -> list[str]:
        words = [
            # A name for each run: with exactly_once the cluster remembers what an agent of this name has read.
            f'name = "bench-{job.topic}"',
            f"bootstrap = {json.dumps(job.bootstrap)}",
            'state_dir = "state"',
            'admin = "127.0.0.1:0"',
            self.top,
            "[inputs.files]",
            'type = "tail"',
            f"paths = {json.dumps(list(job.paths))}",
            f"topic = {json.dumps(job.topic)}",
            f"headers = {json.dumps(list(job.headers))}",
        ]
        if job.parse:
            words += ["[[inputs.files.transforms]]", f'parse = "{job.parse}"']
        file = home / "agent.toml"
        file.write_text("\n".join([*words, job.extra]) + "\n")
        return [*job.command, "agent", "run", "-c", str(file), *QUIET]


class ExactAgent(Agent):
    """The same with transactions."""

    name = EXACTLY
    top = 'exactly_once = true\nmachine_id = "bench"'


QUIET = ("--quiet",)
"""No live view: there is nobody to look at it."""


class Rsyslog(Contender):
    """imfile to omkafka with a queue of its own and batches larger than the defaults, and not tuned further."""

    name = RSYSLOG

    def __init__(self, binary: Path, modules: Path, libraries: Path | None) -> None:
        self._binary, self._modules, self._libraries = binary, modules, libraries

    def environment(self) -> dict[str, str]:
        return {} if self._libraries is None else {"LD_LIBRARY_PATH": str(self._libraries)}

    def version(self) -> str:
        env = {**os.environ, **self.environment()}
        done = subprocess.run([self._binary, "-v"], capture_output=True, text=True, env=env)
        return done.stdout.split("(", 1)[0].split()[1]

    def command(self, home: Path, job: Job) -> list[str]:
        inputs = "\n".join(
            f'input(type="imfile" file="{path}" tag="bench" ruleset="out" maxLinesAtOnce="0")' for path in job.paths
        )
        settings = f'"compression.codec=lz4","linger.ms={LINGER_MS}","acks=all","queue.buffering.max.messages=1000000"'
        file = home / "rsyslog.conf"
        file.write_text(
            f"""global(workDirectory="{home}" maxMessageSize="64k")
module(load="imfile" mode="inotify")
module(load="omkafka")
template(name="line" type="string" string="%msg%")
ruleset(name="out" queue.type="LinkedList" queue.size="200000" queue.dequeueBatchSize="4096") {{
  action(type="omkafka" broker=["{job.bootstrap}"] topic="{job.topic}" template="line" partitions.auto="on"
    confParam=[{settings}])
}}
{inputs}
"""
        )
        return [
            str(self._binary), "-n", "-f", str(file), "-i", str(home / "rsyslog.pid"), "-M", str(self._modules)
        ]  # fmt: skip


class Script(Contender):
    """confluent-kafka (librdkafka) behind a loop over lines: no memory of what was sent."""

    name = SCRIPT

    def command(self, home: Path, job: Job) -> list[str]:
        return [sys.executable, "-m", "bench.agent.script", job.bootstrap, job.topic, *job.paths]


def find_rsyslog() -> tuple[Rsyslog | None, str]:
    """rsyslog with its modules for files and Kafka: this machine's, or Debian's packages unpacked under .cache."""
    installed = shutil.which("rsyslogd")
    modules = Path("/usr/lib/x86_64-linux-gnu/rsyslog")
    if installed and (modules / "omkafka.so").exists():
        return Rsyslog(Path(installed), modules, None), ""
    libraries = CACHE / "usr" / "lib" / "x86_64-linux-gnu"
    binary = CACHE / "usr" / "sbin" / "rsyslogd"
    if not binary.exists():
        try:
            _unpack()
        except (OSError, subprocess.SubprocessError) as wrong:
            return None, f"rsyslog is not here and its packages could not be fetched ({wrong}), so it is not measured."
    return Rsyslog(binary, libraries / "rsyslog", libraries), ""


def _unpack() -> None:
    """The packages of the distribution, fetched by name and unpacked, nothing installed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", *PACKAGES], cwd=CACHE, check=True, capture_output=True, timeout=120)
    for package in CACHE.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(CACHE)], check=True, capture_output=True, timeout=60)
