"""Runs a node with the short way of its produces taken, and counted, or taken away.

    python paths.py on|off FILE server start --config server.properties

FILE gets the number of requests that were answered by the short way, when the node has ended.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ON, OFF = "on", "off"


def main(way: str, file: str, *arguments: str) -> None:
    from penstock.cli.main import main as penstock
    from penstock.server.handlers import produce

    taken = 0

    def counted(short_way: Callable[..., Any]) -> Callable[..., Any]:
        def produced(*request: Any) -> Any:
            nonlocal taken
            outcome = short_way(*request)
            taken += outcome is not None
            return outcome

        return produced

    if way == OFF:
        del produce.handle_plain
    else:
        produce.handle_plain = counted(produce.handle_plain)
    atexit.register(lambda: Path(file).write_text(str(taken)))
    sys.argv[1:] = arguments
    penstock()


if __name__ == "__main__":
    main(*sys.argv[1:])
