"""Which ledger a query's decisions are in: a file in its checkpoint, copied with it.

The ledger says where a query stands, and a query that nobody has heard of begins. So something beside the ledger has
to say that there was one: else a ledger that was deleted would be a fresh start, and whatever is played again would be
in its topic twice.
"""

from __future__ import annotations

import json
from typing import Final

from penstock.spark.errors import Missing
from penstock.spark.lake.places import absolute, opened, read_text, write_whole
from penstock.spark.topic_sink.transactions.names import MARK_FILE

_LEDGER: Final = "ledger"


class Mark:
    """The one in the checkpoint at `checkpoint`."""

    def __init__(self, checkpoint: str) -> None:
        self._files, root = opened(absolute(checkpoint))
        self._path = f"{root}/{MARK_FILE}"

    def read(self) -> str:
        """The id of the ledger's topic; "" when none was written."""
        try:
            return str(json.loads(read_text(self._files, self._path))[_LEDGER])
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, KeyError, TypeError) as wrong:
            raise Missing(
                f"{self._path} cannot be read ({wrong}), and without it nobody knows where this query stands: bring "
                "it back with the checkpoint"
            ) from wrong

    def write(self, ledger_id: str) -> None:
        write_whole(self._files, self._path, json.dumps({_LEDGER: ledger_id}))
