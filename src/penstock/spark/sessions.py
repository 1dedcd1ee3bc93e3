"""A Spark session with the settings that were measured to be right, and one clear sentence when Java is missing."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import penstock
from penstock.spark.errors import Missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER: Final = "local[*,4]"
"""All cores of this machine; a task that fails is tried four times, as on a cluster."""

JAVA_LEAST: Final = 17

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_CHECKPOINTS: Final = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"

EVERYWHERE: Final = {
    # Both directions full, a loopback TCP connection between the JVM and a Python worker stalls for good.
    "spark.python.unix.domain.socket.enabled": "true",
    # Arrow batches carry the session's zone; everything of ours is in UTC.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    # A batch commits what it changed, and a background thread whole snapshots: 2 to 33 ms where it was 160 to 286.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}

LOCAL: Final = {
    # Hadoop's FileContext forks chmod and readlink for every checkpoint file: 100 ms a batch. One driver per checkpoint
    # needs no rename that refuses to overwrite. (RawLocalFileSystem saves ten more, but state in RocksDB fails on it.)
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def session(
    master: str = LOCAL_MASTER,
    *,
    app_name: str = "penstock",
    settings: Mapping[str, str] | None = None,
    formats: bool = True,
) -> SparkSession:
    """A session on `master` with both formats registered, unless nobody needs them; `settings` win over ours.

    When a session is already running in this process, that one is given back, as Spark does, with what can still be
    changed changed.
    """
    check_java()
    try:
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise Missing("Spark is not installed: pip install 'penstock[spark]'") from missing
    from penstock.spark.registration import register

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(unzipped_home())
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in (settings_for(master) | dict(settings or {})).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if formats:
        register(spark)
    return spark


def settings_for(master: str) -> dict[str, str]:
    """Our settings for a session on `master`."""
    found = dict(EVERYWHERE)
    if master.startswith("local"):
        found |= LOCAL
        found["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    return found


def check_spark() -> None:
    """Raises `Missing` with the way to get it when Spark's Python package is not there; loads nothing."""
    if importlib.util.find_spec("pyspark") is None:
        raise Missing("pyspark is not installed: pip install 'penstock[spark]'")


def check_java() -> str:
    """The version of the Java that Spark would run; raises `Missing` with one sentence that says what to do."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    wanted = f"Spark needs Java {JAVA_LEAST} or newer"
    remedy = "install it (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME"
    if command is None or not os.access(command, os.X_OK):
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java was found on the PATH"
        raise Missing(f"{wanted}, but {where}: {remedy}")
    told = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    if version is None or int(version[1]) < JAVA_LEAST:
        found = version[1] if version else "an unknown version"
        raise Missing(f"{wanted}, but {command} is {found}: {remedy}")
    return version[1]


def unzipped_home() -> Path:
    """A SPARK_HOME whose workers import pyspark from the installed package.

    The one that pyspark brings has a zip in it, which every new worker would unpack and compile for a second; a home
    without the zip makes them use what is installed.
    """
    import pyspark

    installed = Path(pyspark.__file__).parent
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"
    home = cache / f"spark-{pyspark.__version__}-{_short(str(installed))}"
    if home.is_dir():
        return home
    try:
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache))
    except OSError:
        fresh = Path(tempfile.mkdtemp(prefix="penstock-spark-"))
        home = fresh
    for part in ("bin", "jars", "sbin"):
        (fresh / part).symlink_to(installed / part)
    if fresh != home:
        try:
            fresh.chmod(0o755)
            fresh.rename(home)
        except OSError:
            # Somebody else made it in the meantime.
            shutil.rmtree(fresh)
    return home


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def package_root() -> str:
    """The directory that executors on this machine need on their PYTHONPATH when nothing was installed for them."""
    return str(Path(penstock.__file__).parent.parent)
