"""The process that `beside.begin` starts: `python -m penstock.spark.lake.tidying JOB`.

It holds the lock that it was given until it ends. What goes wrong in it is a warning: the batch has landed long ago.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from typing import Final

from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.upkeep import Due, carry_out

WORK_S_MOST: Final = 3_600
"""After so long whatever it does is given up: a process that hangs would keep the table from ever being tidied."""
_POLITENESS: Final = 10


def main(arguments: list[str]) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    signal.alarm(WORK_S_MOST)
    os.nice(_POLITENESS)
    job = json.loads(arguments[0])
    given = job["options"]
    options = LakeOptions(**{**given, "partition_by": tuple(given["partition_by"])})
    carry_out(open_store(options), options, Due(**job["wanted"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
