"""The console beside the nodes of `penstock dev`: it comes after them, makes way for them, and goes with them.

It is a convenience. Whatever keeps it from running is one line on the screen, and the nodes go on.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from penstock.cli.dev_ports import HOST, free_ports, is_free

PORT: Final = 8080
PATIENT: Final = 10
"""Its niceness: it starts while somebody waits for the first produce."""
STOP_TIMEOUT_S: Final = 10.0
WAREHOUSE: Final = "lake"
"""Where `penstock lake` looks for tables unless it is told."""
NEEDS: Final = ("starlette", "uvicorn")


class DevConsole:
    """Started and stopped by the command that runs the nodes; it ends by itself when that command is killed."""

    def __init__(self, folder: Path, bootstrap: str, *, secure: bool) -> None:
        self._folder, self._bootstrap, self._secure = folder.absolute(), bootstrap, secure
        self._child: subprocess.Popen[bytes] | None = None
        self.told = False

    def start(self) -> str:
        """What to say of it: its address, or why there is none."""
        if any(find_spec(name) is None for name in NEEDS):
            return "not installed; it comes with the extra [console]"
        try:
            port = PORT if is_free(PORT) else free_ports(1)[0]
            self._child = self._begin(port)
        except OSError as failure:
            return f"cannot be started: {failure.strerror or failure}"
        with contextlib.suppress(OSError):  # it has ended already, which is told when it is looked for
            os.setpriority(os.PRIO_PROCESS, self._child.pid, PATIENT)
        return f"http://{HOST}:{port}/"

    def ended(self) -> str | None:
        """A sentence, once, when it has ended by itself."""
        if self._child is None or self.told or self._child.poll() is None:
            return None
        self.told = True
        return f"the console has ended; {self._log} may say why"

    def stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None, "it ends when nobody holds this"
        with contextlib.suppress(OSError):
            child.stdin.close()
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    @property
    def _log(self) -> Path:
        return self._folder / "console.log"

    def _begin(self, port: int) -> subprocess.Popen[bytes]:
        # Without a topic for its past: a cluster to try things on has no topics and groups that nobody made.
        where = ["--data-dir", str(self._folder)] if self._secure else []
        # The tables of `penstock lake` and of pipelines that are run here: there may be none yet.
        lake = [] if os.environ.get("PENSTOCK_WAREHOUSE") else ["--warehouse", WAREHOUSE]
        with self._log.open("ab") as out:
            return subprocess.Popen(
                [
                    sys.executable, "-P", "-m", "penstock.cli.main", "console", "--port", str(port), "--name", "dev",
                    "--no-history", "--while-input", "--audit-log", str(self._folder / "console-audit.log"), "-b",
                    self._bootstrap, *where, *lake,
                ],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
