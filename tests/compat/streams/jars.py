"""Fetches the jars of Kafka Streams by Maven, once: the library, its clients, and RocksDB for its stores."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from tests.compat.apache.jars import ROOT, VERSION, Unavailable

POM = Path(__file__).with_name("pom.xml")
CACHE = ROOT / ".cache" / f"kafka-streams-{VERSION}"


def class_path() -> str:
    """What an application is compiled and run with. Safe to call from several processes."""
    complete = CACHE / "complete"
    if not complete.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                _fetch()
                complete.touch()
    return os.pathsep.join(str(jar) for jar in sorted((CACHE / "lib").glob("*.jar")))


def _fetch() -> None:
    if shutil.which("mvn") is None:
        raise Unavailable(f"mvn is not installed; Kafka Streams {VERSION} comes by Maven")
    command = ["mvn", "-q", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={CACHE / 'lib'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"Maven could not fetch Kafka Streams {VERSION}:\n{done.stdout}\n{done.stderr}")
