"""What this room raises. Spark shows the message of an exception and a Python traceback: the message says what to do.

All of them survive pickling: they cross from workers to the driver.
"""

from __future__ import annotations

from typing import Final

from penstock.model.errors import PenstockError

GO_ON: Final = "To go on with what is there, set failOnDataLoss=false; to begin anew, use another checkpoint"
"""What a program of the user's own can do about lost data; a pipeline has commands and a file for it."""


class SparkRoomError(PenstockError):
    """The root of what this room raises."""


class BadOption(SparkRoomError, ValueError):
    """An option, or several together, cannot be right; says which, and what would be."""


class Missing(SparkRoomError):
    """Something that is needed is not installed or not there: Java, a library, a topic, a table; says how to get it."""


class DataLost(SparkRoomError):
    """Records that were to be read are gone: trimmed, cut off, or their topic was deleted or made anew."""


class TopicLost(DataLost):
    """The topic itself is gone, or another one has its name: a query without its checkpoint begins with that one."""


class Undecodable(SparkRoomError):
    """A record's value does not fit its format and the user chose to fail; says topic, partition, offset and why."""


class CommitRefused(SparkRoomError):
    """A table does not stand where a batch begins: committing it would double records or skip some."""
