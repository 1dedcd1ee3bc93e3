"""`penstock …` as a process that need not load Python and its modules first.

A template process has them loaded and forks for every command. What it forks has the arguments, the folder, the
environment and the three streams that it is given, ends as an interpreter ends to those who look from outside, and is
waited for by its exit code: a script cannot tell it from `penstock` but by the time it takes. Commands in whose start
or signals something is to be seen are started in full (`tests.cli.command.Running`, `test_startup`).

`run` asks the template of this process; `install` makes a `penstock` for a PATH that asks it.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LOADED = ("penstock.cli", "penstock.client", "penstock.spark.pipeline")
"""Packages whose modules the template has; what they import when a command runs is imported as ever."""
NOT_LOADED = ("reference", "driver", "arrow")
LIBRARIES = ("pyarrow.dataset", "deltalake", "pyiceberg.catalog.sql")
"""Those of the lakes take longer to load than any command of theirs takes to run, and have a template of their own:
other commands would only have to take them down again. They start no thread that does not survive a fork, if the linear
algebra beneath them is told to start none."""

LOOK_S = 0.25
"""How often it is asked whether time is over."""

_LENGTH, _CODE = struct.Struct("!I"), struct.Struct("!i")

_SCRIPT = """#!{python} -ISE
import sys
sys.path.insert(0, {folder!r})
from warm import ask
address = {lakes!r} if sys.argv[1:2] == ["lake"] else {plain!r}
sys.exit(ask(address, sys.argv[1:], (0, 1, 2)))
"""


def run(
    arguments: Sequence[str],
    *,
    stdin: str = "",
    cwd: Path | None = None,
    environment: Mapping[str, str],
    over: Callable[[], bool],
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command that ends by itself before its time is `over`."""
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        given.write(stdin)
        given.seek(0)
        streams = (given.fileno(), out.fileno(), err.fileno())
        address = _template(lakes=list(arguments[:1]) == ["lake"])
        code = ask(address, list(arguments), streams, cwd=cwd, environment=environment, over=over)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def install(folder: Path) -> Path:
    """Makes `penstock` in `folder`, which is for a PATH of this process's children."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "penstock"
    places = {"lakes": _template(lakes=True), "plain": _template(lakes=False)}
    script.write_text(_SCRIPT.format(python=sys.executable, folder=str(Path(__file__).parent), **places))
    script.chmod(0o755)
    return folder


def ask(
    address: str,
    arguments: list[str],
    streams: tuple[int, int, int],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    over: Callable[[], bool] | None = None,
) -> int:
    """The exit code of a command, or 128 and the signal that ended it; it is ended when its time is `over`."""
    order = {
        "arguments": arguments,
        "cwd": str(cwd) if cwd else os.getcwd(),
        "environment": dict(os.environ if environment is None else environment),
    }
    text = json.dumps(order).encode()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
        socket.send_fds(link, [_LENGTH.pack(len(text))], list(streams))
        link.sendall(text)
        while not select.select([link], [], [], None if over is None else LOOK_S)[0]:
            if over is not None and over():
                raise TimeoutError(f"`penstock {' '.join(arguments)}` did not end in its time")
        answer = link.recv(_CODE.size)
    code: int = _CODE.unpack(answer)[0]
    return code if code >= 0 else 128 - code


@functools.cache
def _template(*, lakes: bool) -> str:
    """The address of the template, which ends with this process."""
    folder = tempfile.mkdtemp(prefix="penstock-warm-")
    address = f"{folder}/socket"
    command = [sys.executable, __file__, address, *(LIBRARIES if lakes else ())]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n", "the template says when it is ready"

    def end() -> None:
        child.kill()
        child.communicate()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return address


# -- the template


def main(address: str, *libraries: str) -> None:
    """Serves until its input ends; in the processes that it forks, runs their command."""
    _load(libraries)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        os.write(1, b"ready\n")
        order = _serve(listener)
    if order is not None:
        from penstock.cli.main import main as penstock

        sys.argv = ["penstock", *order]
        try:
            penstock(order)
        except SystemExit as ended:
            if not isinstance(ended.code, int | None):
                raise
            code = ended.code or 0
        else:
            code = 0
        _end(code)


def _end(code: int) -> None:
    """What an interpreter does when it ends, but for taking down every module that the template has loaded, which takes
    longer than most commands. An end that goes wrong is left to the interpreter, which has words for it."""
    import gc
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()  # who forgot to close something is told now or never
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)
    os._exit(code)


def _load(libraries: Sequence[str]) -> None:
    import gc
    import importlib
    import pkgutil

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in libraries:
        importlib.import_module(name)
    for name in LOADED:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith(NOT_LOADED):
                importlib.import_module(module.name)
    assert "pyspark" not in sys.modules, "commands that need no Spark do not load it"
    gc.collect()
    gc.freeze()


def _serve(listener: socket.socket) -> list[str] | None:
    """None at the end; in a process that is forked for a command, the command's arguments."""
    # Attendants are nobody's business once they have answered.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:
            return None
        link, _ = listener.accept()
        with link:
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return _attend(link)


def _attend(link: socket.socket) -> list[str]:
    """Forks once more for the command, waits for it and answers; returns in the command's process."""
    length, streams, _, _ = socket.recv_fds(link, _LENGTH.size, 3)
    text = b""
    while len(text) < _LENGTH.unpack(length)[0]:
        text += link.recv(1 << 16)
    order = json.loads(text)
    pid = os.fork()
    if pid == 0:
        _become(order["cwd"], order["environment"], streams)
        arguments: list[str] = order["arguments"]
        return arguments
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, link], [], [])
    if ended not in ready:  # whoever asked has gone
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with link:
        link.sendall(_CODE.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _become(cwd: str, environment: Mapping[str, str], streams: Sequence[int]) -> None:
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
