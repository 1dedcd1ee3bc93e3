"""CreateAcls and DeleteAcls."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.controller import acls
from penstock.controller.acls import CHANGES_MAX, decide_create, decide_delete
from penstock.model.errors import INVALID_REQUEST, POLICY_VIOLATION
from penstock.protocol.disk.metadata_security import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.delete_acls import DeleteAclsRequest
from penstock.security.acls import AclEntry, acl_filter, entry_of
from tests.unit.controller.security_desk import SecurityDesk

TOPIC, LITERAL, PREFIXED, READ, WRITE, DENY, ALLOW = 2, 3, 4, 3, 4, 2, 3
ANY, MATCH = 1, 2


def creation(name: str = "t", operation: int = READ, **said: Any) -> CreateAclsRequest.AclCreation:
    usual = {"resource_type": TOPIC, "principal": "User:alice", "host": "*", "permission_type": ALLOW}
    return CreateAclsRequest.AclCreation(**{**usual, "resource_name": name, "operation": operation, **said})


def create(desk: SecurityDesk, *creations: CreateAclsRequest.AclCreation) -> list[tuple[int, str | None]]:
    reply = desk.do(decide_create(desk.world, CreateAclsRequest(creations=list(creations)), desk.acls))
    return [(result.error_code, result.error_message) for result in reply.results]


def asked(name: str | None = None, **said: Any) -> DeleteAclsRequest.DeleteAclsFilter:
    usual = {"resource_type_filter": ANY, "pattern_type_filter": ANY, "operation": ANY, "permission_type": ANY}
    nobody = {"principal_filter": None, "host_filter": None}
    return DeleteAclsRequest.DeleteAclsFilter(**{**usual, **nobody, "resource_name_filter": name, **said})


def held(desk: SecurityDesk) -> set[AclEntry]:
    return {entry_of(record) for record in desk.image.acls.values()}


def test_an_acl_that_exists_or_stands_twice_is_written_once() -> None:
    desk = SecurityDesk()
    assert create(desk, creation(), creation("u"), creation()) == [(0, None)] * 3
    assert len(desk.image.acls) == 2
    assert decide_create(desk.world, CreateAclsRequest(creations=[creation("u")]), desk.acls).records == []


def test_a_bad_acl_does_not_keep_the_others_out() -> None:
    desk = SecurityDesk()
    told = create(desk, creation(""), creation("good"), creation("x", principal="alice"))
    assert [code for code, _ in told] == [INVALID_REQUEST.code, 0, INVALID_REQUEST.code]
    assert told[0] == (INVALID_REQUEST.code, "Invalid empty resource name")
    assert [entry.name for entry in held(desk)] == ["good"]


def test_acls_of_one_request_have_ids_of_their_own_and_come_back_from_the_log() -> None:
    desk = SecurityDesk()
    create(desk, *(creation(f"t{number}") for number in range(50)))
    assert len(desk.image.acls) == len({record.id for record in desk.image.acls.values()}) == 50
    assert all(isinstance(record, AccessControlEntryRecord) for record in desk.image.acls.values())
    assert desk.acls.entries == {acl_id: entry_of(record) for acl_id, record in desk.image.acls.items()}


def test_more_than_one_request_may_change_are_all_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "CHANGES_MAX", 3)
    desk = SecurityDesk()
    told = create(desk, *(creation(f"t{number}") for number in range(4)))
    assert {code for code, _ in told} == {POLICY_VIOLATION.code}
    assert desk.image.acls == {}
    create(desk, *(creation(f"t{number}") for number in range(3)))
    create(desk, creation("t3"))
    decision = decide_delete(desk.world, DeleteAclsRequest(filters=[asked("t0"), asked()]), desk.acls)
    assert decision.records == []
    assert [each.error_code for each in decision.reply.filter_results] == [INVALID_REQUEST.code] * 2
    assert CHANGES_MAX == 10_000


def test_what_wide_filters_may_tell_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "TOLD_MAX", 20)
    desk = SecurityDesk()
    create(desk, *(creation(f"t{number}") for number in range(10)))
    assert len(decide_delete(desk.world, DeleteAclsRequest(filters=[asked()] * 2), desk.acls).records) == 10
    assert decide_delete(desk.world, DeleteAclsRequest(filters=[asked()] * 3), desk.acls).records == []


def test_every_filter_tells_all_that_it_removes_and_each_is_removed_once() -> None:
    desk = SecurityDesk()
    create(desk, creation("a"), creation("ab", resource_pattern_type=PREFIXED), creation("*"), creation("z"))
    request = DeleteAclsRequest(filters=[asked("abc", pattern_type_filter=MATCH), asked("*"), asked(operation=0)])
    decision = decide_delete(desk.world, request, desk.acls)
    matched = [sorted(acl.resource_name for acl in each.matching_acls) for each in decision.reply.filter_results]
    assert matched == [["*", "ab"], ["*"], []]
    unknown = decision.reply.filter_results[2]
    assert (unknown.error_code, unknown.error_message) == (INVALID_REQUEST.code, "Unknown entryFilter.")
    assert len(decision.records) == 2
    assert all(isinstance(record, RemoveAccessControlEntryRecord) for record, _ in decision.records)
    desk.do(decision)
    assert {entry.name for entry in held(desk)} == {"a", "z"}


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
creations = st.builds(
    creation,
    names,
    st.sampled_from([READ, WRITE]),
    resource_pattern_type=st.sampled_from([LITERAL, PREFIXED]),
    principal=st.sampled_from(["User:a", "User:b"]),
)
filters = st.builds(
    asked,
    st.none() | names | st.just("abcd"),
    pattern_type_filter=st.sampled_from([ANY, MATCH, LITERAL, PREFIXED]),
    principal_filter=st.sampled_from([None, "User:a", "User:c"]),
    operation=st.sampled_from([ANY, READ]),
)


@given(st.lists(creations, max_size=20), st.lists(filters, min_size=1, max_size=4))
def test_deleting_leaves_what_no_filter_means(
    made: list[CreateAclsRequest.AclCreation], meant: list[DeleteAclsRequest.DeleteAclsFilter]
) -> None:
    desk = SecurityDesk()
    create(desk, *made)
    before = held(desk)
    plain = [
        acl_filter(each.resource_type_filter, each.resource_name_filter, each.pattern_type_filter,
                   each.principal_filter, each.host_filter, each.operation, each.permission_type)
        for each in meant
    ]  # fmt: skip
    desk.do(decide_delete(desk.world, DeleteAclsRequest(filters=meant), desk.acls))
    assert held(desk) == {entry for entry in before if not any(each.matches(entry) for each in plain)}
