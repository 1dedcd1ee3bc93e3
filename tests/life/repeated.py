"""Requests that were sent again because the first answer was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.client.errors import ClientError
from penstock.model.errors import GROUP_ID_NOT_FOUND, TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION


@contextmanager
def perhaps_done_before(acts: Counter[str]) -> Iterator[None]:
    """A request whose first answer was lost with its broker is sent again, and what it wanted is so already."""
    try:
        yield
    except ClientError as refusal:
        if refusal.error not in (TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND):
            raise
        acts["requests done before"] += 1
