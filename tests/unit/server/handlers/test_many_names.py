"""A request with very many names is work for each of them, and not for each with every other: one loop serves all."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.server.handlers import (
    consumer_group_describe,
    create_partitions,
    create_topics,
    delete_groups,
    describe_groups,
)

MANY = 2_000


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Asker:
    """May do to every second name what it asks for; whatever is asked of others has no answer of weight."""

    api_version = 5
    node = SimpleNamespace(
        groups=SimpleNamespace(look=lambda name, *_: _group(name), act=lambda name, *_: _group(name)),
        features=SimpleNamespace(finalized=lambda: (0, {"group.version": 1})),
    )

    def __init__(self) -> None:
        self.asked = 0

    def allow(self, *question: Any) -> bool:
        self.asked += 1
        return self.asked % 2 == 0

    def may(self, *_: Any) -> bool:
        return False


def _group(name: str) -> Any:
    return SimpleNamespace(group_id=name, error_code=0, error_message=None, members=[])


def _topics(kind: Any, **more: Any) -> Callable[[list[str]], list[Any]]:
    return lambda names: [kind(name=name, **more) for name in names]


@pytest.mark.parametrize(
    ("handler", "request_of"),
    [
        (describe_groups, lambda names: DescribeGroupsRequest(groups=names)),
        (consumer_group_describe, lambda names: ConsumerGroupDescribeRequest(group_ids=names)),
        (delete_groups, lambda names: DeleteGroupsRequest(groups_names=names)),
        (
            create_topics,
            lambda names: CreateTopicsRequest(topics=_topics(CreateTopicsRequest.CreatableTopic)(names)),
        ),
        (
            create_partitions,
            lambda names: CreatePartitionsRequest(
                topics=_topics(CreatePartitionsRequest.CreatePartitionsTopic, count=2)(names)
            ),
        ),
    ],
    ids=["describe_groups", "consumer_group_describe", "delete_groups", "create_topics", "create_partitions"],
)
def test_names_are_not_compared_with_all_others(handler: Any, request_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if handler is consumer_group_describe:
        monkeypatch.setattr(handler, "serves_consumer_protocol", lambda _ctx: True)
        monkeypatch.setattr(handler, "_with_topics_allowed", lambda _ctx, group: group)
    if handler in (create_topics, create_partitions):

        async def nothing(_ctx: Any, request: Any) -> Any:
            kind = handler.CreateTopicsResponse if handler is create_topics else handler.CreatePartitionsResponse
            assert len(request.topics) == MANY // 2
            return kind()

        monkeypatch.setattr(handler, "_create", nothing)
    names, asker = [Name(f"name-{number}") for number in range(MANY)], Asker()
    Name.compared = 0
    outcome = handler.handle(asker, request_of(names))
    if inspect.iscoroutine(outcome):
        with pytest.raises(StopIteration):
            outcome.send(None)
    assert asker.asked == MANY
    assert Name.compared < 10 * MANY
