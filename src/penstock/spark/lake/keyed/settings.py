"""What makes a table keyed. Pure; kept in the table as a property, so that whoever reads its log knows it too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from penstock.spark.errors import BadOption

OFFSET: Final = "_offset"
TIMESTAMP: Final = "_timestamp"

KEYED_TRIGGER: Final = "1 minute"
"""The default: a merge rewrites the files of whole buckets, and what is fresher is read from the log."""

BUCKETS: Final = 16
BUCKETS_MOST: Final = 1024
KEEP_DELETES_MS: Final = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class KeyedSettings:
    """How rows of a query change a table."""

    keys: tuple[str, ...]
    """Columns whose values are a row's name in the table."""
    sequence_by: str = OFFSET
    """What says which of two changes of a key is the later one: `_offset`, `_timestamp`, or SQL over the rows."""
    delete_when: str = ""
    """SQL: rows for which it is true delete."""
    ignore_when: str = ""
    """SQL: rows for which it is true change nothing."""
    keep_deletes_ms: int = KEEP_DELETES_MS
    """For so long an older change that comes after a delete is known to be older."""
    buckets: int = BUCKETS
    """Files that keys are spread over: a merge rewrites those whose keys changed."""
    cdc: str = ""
    """The envelope that changes come in; "" for plain rows."""

    @property
    def in_log_order(self) -> bool:
        """Whether the log's own order is that of changes: then what comes later is later, across batches too."""
        return self.sequence_by == OFFSET

    @property
    def keeps_deletes(self) -> bool:
        return not self.in_log_order and self.keep_deletes_ms > 0

    def to_property(self) -> str:
        return json.dumps({**asdict(self), "keys": list(self.keys)}, sort_keys=True)

    @classmethod
    def of_property(cls, text: str) -> KeyedSettings:
        try:
            given = json.loads(text)
            return cls(**{**given, "keys": tuple(given["keys"])})
        except (ValueError, TypeError, KeyError) as wrong:
            raise BadOption(f"the table's property penstock.keyed is not understood ({wrong}): {text[:200]}") from None
