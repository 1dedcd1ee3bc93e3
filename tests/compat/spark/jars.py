"""Fetches the jars of Spark's Kafka connector by Maven, once.

The connector is built for one release of Spark. What is named here is the newest that a public repository held when
this was written; it was tried on the Spark that pyspark brings.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

from tests.compat.apache.jars import ROOT, Unavailable

VERSION = "4.2.0"
POM = Path(__file__).with_name("pom.xml")
CACHE = ROOT / ".cache" / f"spark-connector-{VERSION}"


def available() -> bool:
    """True when the connector is cached, or can be fetched."""
    return shutil.which("java") is not None and ((CACHE / "complete").exists() or shutil.which("mvn") is not None)


def connector_jars() -> list[Path]:
    """The connector, Kafka's client and what they need beyond Spark's own jars. Safe to call from several processes."""
    complete = CACHE / "complete"
    if not complete.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                _fetch()
                complete.touch()
    return sorted((CACHE / "lib").glob("*.jar"))


def _fetch() -> None:
    if shutil.which("mvn") is None:
        raise Unavailable(f"mvn is not installed; Spark's Kafka connector {VERSION} comes by Maven")
    command = ["mvn", "-q", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={CACHE / 'lib'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"Maven could not fetch Spark's Kafka connector:\n{done.stdout}\n{done.stderr}")
