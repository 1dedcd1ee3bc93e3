"""Who may stop a pipeline, by the cluster's own rules."""

from __future__ import annotations

import pytest

from penstock.client.admin import Acl
from penstock.console.pipelines.altering import may_alter

GROUPS = ["spark-flow-lake", "spark-flow-topic"]


def acl(operation: str = "alter", name: str = "spark-flow-", **more: str) -> Acl:
    return Acl("User:anna", operation, "group", name, **{"pattern": "prefixed", **more})


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([acl()], True),
        ([acl("all")], True),
        ([acl(name="*", pattern="literal")], True),
        ([acl("read"), acl("describe"), acl("delete")], False),
        ([acl(name="spark-flow-lake", pattern="literal")], False),
        ([acl(host="10.0.0.1")], False),
        ([acl(), acl(permission="deny", name="spark-flow-topic", pattern="literal")], False),
        ([acl(), acl(permission="deny", host="10.0.0.1")], False),
        ([Acl("User:ben", "alter", "group", "*")], False),
        ([Acl("User:anna", "alter", "topic", "*")], False),
    ],
)
def test_all_groups_have_to_be_allowed_from_everywhere(acls: list[Acl], allowed: bool) -> None:
    assert may_alter(acls, "User:anna", GROUPS) is allowed
    assert not may_alter(acls, "User:anna", []), "a pipeline whose groups are not known is nobody's"
