"""Building distributions and trying out what they install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.patience import within

DEADLINE_S = 600.0
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}
NEWER_MINORS = range(12, 20)
QUIET = {"log_level": 0, "log.connection.close": False}


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a command printed; its words are shown when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=within(DEADLINE_S),
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def only_file(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def pythons() -> dict[str, Path]:
    """The interpreters of this machine that Penstock supports, by version: our own, those on the path, pyenv's."""
    found = {"{}.{}".format(*sys.version_info): Path(sys.executable)}
    for minor in NEWER_MINORS:
        version = f"3.{minor}"
        on_path = shutil.which(f"python{version}")
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        for python in [*([Path(on_path)] if on_path else []), *kept]:
            # A shim of pyenv is there for versions that are not chosen, and fails.
            if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
                found.setdefault(version, python)
    return found


class Environment:
    """A virtual environment away from the source."""

    def __init__(self, home: Path, *, with_pip: bool, python: str | Path = sys.executable) -> None:
        self.home = home
        run(python, "-m", "venv", *([] if with_pip else ["--without-pip"]), home, cwd=home.parent)
        self.python = home / "bin" / "python"

    def borrow_dependencies(self) -> None:
        """Uses the packages beside the tests' own interpreter, but nothing that those install by path hooks."""
        site = run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=self.home).strip()
        Path(site, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def kernels(self) -> str:
        """Which twin serves, and a check that it is the installed package that answers."""
        script = "import penstock, penstock.kernels as k; print(penstock.__file__, k.IMPLEMENTATION)"
        where, implementation = run(self.python, "-c", script, cwd=self.home).split()
        assert Path(where).is_relative_to(self.home)
        return implementation

    def try_out(self) -> None:
        """A node from this environment takes records and gives them back to a foreign client; it stops cleanly."""
        command = [self.home / "bin" / "penstock", "dev", "--port", "0", "--ephemeral"]
        node = subprocess.Popen(command, cwd=self.home, stdout=subprocess.PIPE, text=True)
        try:
            _round_trip(_until_ready(node))
            node.terminate()
            assert node.wait(within(30)) == 0
        finally:
            node.kill()
            node.wait()
            if node.stdout is not None:
                node.stdout.close()


def _until_ready(node: subprocess.Popen[str]) -> str:
    assert node.stdout is not None
    for line in node.stdout:
        found = re.search(r"bootstrap\s+(\S+)", line)
        if found:
            return found[1]
    raise AssertionError("the node did not come up")


def _round_trip(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "zstd", **QUIET})
    values = [b"%d" % number for number in range(1000)]
    for value in values:
        producer.produce("t", value, partition=0)
    assert producer.flush(within(60)) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False, **QUIET})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    while len(found) < len(values):
        records = consumer.consume(1000, timeout=within(30))
        assert records, "records stopped coming"
        found += [record.value() for record in records]
    consumer.close()
    assert found == values
