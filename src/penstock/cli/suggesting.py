"""A name that the cluster does not have: which one was probably meant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from penstock.client.errors import ClientError, UnknownTopic
from penstock.model.closest import did_you_mean
from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_CONFIG,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
)

if TYPE_CHECKING:
    from penstock.client.admin import Admin

_COMPARED_MAX: Final = 5_000
"""Programs make transactional ids by the hundred thousand, and comparing one costs some microseconds."""


@asynccontextmanager
async def suggesting(
    admin: Admin,
    *,
    topics: Iterable[str] = (),
    groups: Iterable[str] = (),
    configs: Iterable[str] = (),
    transactional_ids: Iterable[str] = (),
) -> AsyncIterator[None]:
    """What is refused in here because the cluster does not know a topic, a group, a transactional id or a config of a
    topic by its name is refused with the name that is nearest."""
    try:
        yield
    except ClientError as failure:
        failure.why += await _hint(admin, failure, topics, groups, configs, transactional_ids)
        raise


async def _hint(
    admin: Admin,
    failure: ClientError,
    topics: Iterable[str],
    groups: Iterable[str],
    configs: Iterable[str],
    transactional_ids: Iterable[str],
) -> str:
    try:
        if isinstance(failure, UnknownTopic) or failure.error is UNKNOWN_TOPIC_OR_PARTITION:
            return _nearest(topics, [topic.name for topic in await admin.topics(internal=True)])
        if failure.error is GROUP_ID_NOT_FOUND:
            return _nearest(groups, [group.id for group in await admin.groups()])
        if failure.error is TRANSACTIONAL_ID_NOT_FOUND:
            listed = await admin.list_transactions()
            return _nearest(transactional_ids, [each.id for each in listed[:_COMPARED_MAX]])
    except ClientError:
        return ""  # what was asked for first is what matters
    if failure.error is INVALID_CONFIG:
        from penstock.model.config.topic import TOPIC_CONFIGS

        return _nearest(configs, TOPIC_CONFIGS)
    return ""


def _nearest(wanted: Iterable[str], known: Iterable[str]) -> str:
    """About the first that is not there."""
    there = set(known)
    missing = next((name for name in wanted if name not in there), None)
    return "" if missing is None else did_you_mean(missing, sorted(there))
