"""A real Postgres in processes of its own, to be asked, killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.patience import wait_for

MISSING = "these tests need a PostgreSQL server: apt-get install -y postgresql (make setup does so where it may)"

SETTINGS = {
    "wal_level": "logical",
    "listen_addresses": "",
    "fsync": "off",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "wal_sender_timeout": "10s",
    "log_min_messages": "fatal",
}


def programs() -> Path:
    """Where initdb and postgres are; Debian keeps them out of the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    assert initdb is not None, MISSING
    return Path(initdb).resolve().parent


class PostgresServer:
    """One server, reached by its socket only."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder, self._settings, self._programs = folder, settings, programs()
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        # Postgres refuses to run as root.
        self._user = None if os.geteuid() else _user()
        if self._user is not None:
            os.chown(folder, self._user, -1)
        self._run("initdb", "-D", str(self._data), "-U", "penstock", "-A", "trust", "-E", "UTF8", "--no-sync",
                  "--locale=C")  # fmt: skip

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, user=self._user, cwd=self.folder, check=False)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        options = [argument for name, value in self._settings.items() for argument in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-k", str(self.folder), *options]
        self._process = subprocess.Popen(command, user=self._user, cwd=self.folder, stderr=subprocess.DEVNULL)
        wait_for("Postgres answers", self._answers, timeout_s=20)

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            self.connect("postgres").close()
            return True
        return False

    def kill(self) -> None:
        """The postmaster by -9; its children end when they notice."""
        assert self._process is not None
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True, check=False
        )
        self._process.kill()
        self._process.wait()
        for pid in map(int, children.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    def back_up(self) -> None:
        """All its files, as they are; it is stopped meanwhile."""
        self._copy_while_stopped(self._data, self.folder / "backup")

    def restore(self) -> None:
        self._copy_while_stopped(self.folder / "backup", self._data)

    def _copy_while_stopped(self, files: Path, to: Path) -> None:
        self.stop()
        shutil.rmtree(to, ignore_errors=True)
        subprocess.run(["cp", "-a", str(files), str(to)], check=True)
        self.start()

    def dsn(self, database: str) -> str:
        return f"host={self.folder} user=penstock dbname={database}"

    def connect(self, database: str) -> Any:
        return psycopg.connect(self.dsn(database), autocommit=True)

    def make_database(self, name: str) -> Any:
        connection = self.connect("postgres")
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
        connection.close()
        return self.connect(name)


def _user() -> int:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    raise AssertionError("there is no user that a Postgres could run as")


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    # Not below pytest's folder, which is closed to all but its owner; and names of sockets are short.
    folder = Path(tempfile.mkdtemp(prefix="penstock-pg-"))
    try:
        server = PostgresServer(folder, SETTINGS | settings)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
