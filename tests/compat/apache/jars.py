"""Fetches Apache Kafka's jars by Maven, once, and builds class paths and shared class archives from them.

A JVM that starts with an archive of the classes it will load saves about half its start time, and the tools are started
some hundred times in a run.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import within

VERSION = "4.3.1"
ROOT = Path(__file__).resolve().parents[3]
POM = Path(__file__).resolve().parents[1] / "pom.xml"
CACHE = ROOT / ".cache" / f"kafka-{VERSION}"

# One slf4j binding must be on a class path, never two.
_BROKER_BINDING = "log4j-slf4j-impl-"
_TOOL_BINDING = "slf4j-simple-"

# Runs that load what the tools load. Nobody listens on port 1: the admin client gives up after its short timeout, and
# by then every class of its network path is there.
_NOBODY = ("--bootstrap-server", "127.0.0.1:1")
_TRACED_RUNS = (
    ("org.apache.kafka.tools.TopicCommand", *_NOBODY, "--list", "--command-config"),
    ("kafka.admin.ConfigCommand", *_NOBODY, "--describe", "--entity-type", "brokers", "--command-config"),
    ("org.apache.kafka.tools.GetOffsetShell", *_NOBODY, "--command-config"),
    ("org.apache.kafka.tools.consumer.ConsoleConsumer", *_NOBODY, "--topic", "t", "--timeout-ms=1", "--command-config"),
    ("org.apache.kafka.tools.ConsoleProducer", *_NOBODY, "--topic", "t", "--command-config"),
    ("org.apache.kafka.tools.DumpLogSegments", "--help"),
)


class Unavailable(Exception):
    """Java or Maven is not on this machine, so Apache Kafka cannot be had."""


def available() -> bool:
    """True when Apache Kafka is cached, or can be fetched."""
    return shutil.which("java") is not None and ((CACHE / "complete").exists() or shutil.which("mvn") is not None)


def jar_directory() -> Path:
    """The directory with every jar, fetched at the first call. Safe to call from several processes."""
    complete = CACHE / "complete"
    if not complete.exists():
        with _locked():
            if not complete.exists():
                _fetch()
                complete.touch()
    return CACHE / "lib"


def broker_class_path() -> str:
    """The class path of a broker, with the logging of Kafka's distribution."""
    return _class_path(without=_TOOL_BINDING)


def tool_class_path() -> str:
    """The class path of the command line tools, with logging to stderr."""
    return _class_path(without=_BROKER_BINDING)


def tool_archive() -> Path:
    """The shared class archive for `tool_class_path`, made at the first call."""
    archive = CACHE / "tools.jsa"
    if not archive.exists():
        class_path = tool_class_path()
        with _locked():
            if not archive.exists():
                _dump_archive(class_path, archive)
    return archive


def _class_path(without: str) -> str:
    jars = sorted(jar for jar in jar_directory().glob("*.jar") if not jar.name.startswith(without))
    return os.pathsep.join(str(jar) for jar in jars)


@contextmanager
def _locked() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch() -> None:
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed; Apache Kafka {VERSION} comes by Maven and runs on Java 17")
    command = ["mvn", "-q", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={CACHE / 'lib'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"Maven could not fetch Apache Kafka {VERSION}:\n{done.stdout}\n{done.stderr}")


def _dump_archive(class_path: str, archive: Path) -> None:
    classes: dict[str, None] = {}
    scratch = ("one.lst", "all.lst", "short.properties", "part.jsa")
    listing, merged, settings, partial = (CACHE / name for name in scratch)
    settings.write_text("request.timeout.ms=500\ndefault.api.timeout.ms=500\nmax.block.ms=500\n")
    for main, *arguments in _TRACED_RUNS:
        trace = ["java", "-Xshare:off", f"-XX:DumpLoadedClassList={listing}", "-cp", class_path, main, *arguments]
        if arguments[-1].endswith("-config"):
            trace.append(str(settings))
        subprocess.run(trace, capture_output=True, input=b"a record\n", timeout=within(60))
        classes.update(dict.fromkeys(listing.read_text().splitlines()))
    merged.write_text("\n".join(classes) + "\n")
    dump = ["java", "-Xshare:dump", f"-XX:SharedClassListFile={merged}", f"-XX:SharedArchiveFile={partial}"]
    subprocess.run([*dump, "-cp", class_path], capture_output=True, check=True)
    for path in (listing, merged, settings):
        path.unlink()
    partial.rename(archive)
