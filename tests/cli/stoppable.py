"""`python -m tests.cli.stoppable COMMAND…`: says `loaded`, and hears interrupts as soon as there is a command to stop.

Before that it is Python that is interrupted, and Python that says so.
"""

from __future__ import annotations

import importlib
import signal
import sys
from types import ModuleType

from penstock.cli.main import main

_load = importlib.import_module


def hearing(name: str) -> ModuleType:
    """In place of the import of the command that was chosen."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return _load(name)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    importlib.import_module = hearing  # type: ignore[assignment]  # the same for the one call that comes
    print("loaded", flush=True)
    main(sys.argv[1:])
