"""Everybody asks, and the answer counts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock.server.handlers
from penstock.server.authorize import UNASKED, AllowAll, Asked, Recording, asks
from penstock.server.context import CLUSTER_NAME, Context, Operation, ResourceType

HANDLERS = sorted(Path(penstock.server.handlers.__file__).parent.glob("*.py"))


def context(authorizer: Any) -> Context:
    return Context(SimpleNamespace(authorizer=authorizer), 3, 9)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [path for path in HANDLERS if path.stem != "__init__"], ids=lambda path: path.stem)
def test_every_handler_asks(path: Path) -> None:
    assert asks(path.read_text()) != (path.stem in UNASKED)


def test_without_acls_everything_is_allowed() -> None:
    assert context(AllowAll()).allow(Operation.ALTER, ResourceType.CLUSTER)


def test_a_question_names_operation_and_resource() -> None:
    refusal = Asked(Operation.WRITE, ResourceType.TOPIC, "secret")
    authorizer = Recording(refusal)
    ctx = context(authorizer)
    assert not ctx.allow(Operation.WRITE, ResourceType.TOPIC, "secret")
    assert ctx.allow(Operation.READ, ResourceType.TOPIC, "secret")
    assert ctx.allow(Operation.CREATE, ResourceType.CLUSTER)
    assert authorizer.asked == [
        refusal,
        Asked(Operation.READ, ResourceType.TOPIC, "secret"),
        Asked(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
    ]


@pytest.mark.parametrize(
    ("resource_type", "bits"),
    [
        (ResourceType.TOPIC, 0b1101_1111_1000),
        (ResourceType.GROUP, 0b1101_0100_1000),
        (ResourceType.CLUSTER, 0b1_1111_1010_0000),
    ],
)
def test_authorized_operations_are_a_bit_field(resource_type: ResourceType, bits: int) -> None:
    assert context(AllowAll()).authorized_operations(resource_type, "x") == bits


def test_a_refused_operation_is_missing_from_the_bit_field() -> None:
    everything = context(AllowAll()).authorized_operations(ResourceType.TOPIC, "x")
    some = context(Recording(Asked(Operation.DELETE, ResourceType.TOPIC, "x")))
    assert some.authorized_operations(ResourceType.TOPIC, "x") == everything & ~(1 << Operation.DELETE)
