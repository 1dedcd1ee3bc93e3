"""A node that says what its memory consists of: `python -m tests.life.counted_node CONFIG COUNTS`.

At SIGUSR1 the numbers of its objects by type are written to COUNTS, so that a leak can be named.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from penstock.cli.main import main


def count(path: Path) -> None:
    gc.collect()
    found = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(found))
    os.replace(beside, path)


def count_at_signal(path: Path) -> None:
    def at_signal(_number: int, _frame: FrameType | None) -> None:
        count(path)

    signal.signal(signal.SIGUSR1, at_signal)


if __name__ == "__main__":
    count_at_signal(Path(sys.argv[2]))
    main(["server", "start", "--config", sys.argv[1]])
