"""ACL entries, filters and their validity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import INVALID_REQUEST, Refused
from penstock.model.security import Operation, PatternType, Permission, Principal, ResourceType
from penstock.protocol.disk.metadata_security import AccessControlEntryRecord
from penstock.security.acls import (
    AclEntry,
    AclFilter,
    check_entry,
    check_filter,
    described,
    entry_of,
    parse_principal,
    parse_super_users,
    record_of,
)
from tests.unit.security.acl_worlds import NAMES, allow, deny, entries, uuid_of

READ = allow(Operation.READ, "orders")


@given(entries)
def test_an_entry_comes_back_from_its_record(entry: AclEntry) -> None:
    assert entry_of(record_of(uuid_of(1), entry)) == entry


def test_what_a_later_release_wrote_is_unknown() -> None:
    record = AccessControlEntryRecord(
        id=uuid_of(1), resource_type=99, pattern_type=99, operation=99, permission_type=99, principal="User:a", host="*"
    )
    assert entry_of(record) == AclEntry(
        ResourceType.UNKNOWN, "", PatternType.UNKNOWN, "User:a", "*", Operation.UNKNOWN, Permission.UNKNOWN
    )


def test_an_entry_is_told_as_a_sentence() -> None:
    denial = deny(Operation.WRITE, "or", "User:bob", pattern=PatternType.PREFIXED, host="10.0.0.1")
    assert str(denial) == "DENY WRITE on TOPIC PREFIXED 'or' to User:bob from 10.0.0.1"


@given(entries)
def test_entries_of_known_parts_are_valid_unless_they_name_another_cluster(entry: AclEntry) -> None:
    if entry.resource_type == ResourceType.CLUSTER:
        entry = entry._replace(name="kafka-cluster")
    check_entry(entry)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (READ._replace(name=""), "Invalid empty resource name"),
        (
            READ._replace(resource_type=ResourceType.CLUSTER, name="c"),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (READ._replace(resource_type=ResourceType.ANY), "Invalid resourceType ANY"),
        (READ._replace(resource_type=ResourceType.UNKNOWN), "Invalid resourceType UNKNOWN"),
        (READ._replace(pattern=PatternType.ANY), "Invalid patternType ANY"),
        (READ._replace(pattern=PatternType.MATCH), "Invalid patternType MATCH"),
        (READ._replace(operation=Operation.ANY), "Invalid operation ANY"),
        (READ._replace(permission=Permission.ANY), "Invalid permissionType ANY"),
        (
            READ._replace(principal="alice"),
            "Could not parse principal from `alice` (no colon is present separating the principal type from the "
            "principal name)",
        ),
    ],
)
def test_an_invalid_entry_is_refused_in_kafkas_words(entry: AclEntry, why: str) -> None:
    with pytest.raises(Refused) as refused:
        check_entry(entry)
    assert (refused.value.error, refused.value.why) == (INVALID_REQUEST, why)


@given(entries)
def test_an_open_filter_means_everything(entry: AclEntry) -> None:
    assert AclFilter().matches(entry)


@given(entries, entries)
def test_a_filter_of_all_parts_means_one_entry(entry: AclEntry, other: AclEntry) -> None:
    exact = AclFilter(*entry)
    assert exact.matches(entry)
    assert exact.matches(other) == (entry == other)


@given(entries, st.sampled_from(NAMES))
def test_match_means_what_affects_the_name_and_any_means_what_has_it(entry: AclEntry, name: str) -> None:
    affects = AclFilter(name=name, pattern=PatternType.MATCH).matches(entry)
    if entry.pattern == PatternType.LITERAL:
        assert affects == (entry.name in (name, "*"))
    else:
        assert affects == name.startswith(entry.name)
    assert AclFilter(name=name).matches(entry) == (entry.name == name)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (AclFilter(resource_type=ResourceType.UNKNOWN), "Unknown patternFilter."),
        (AclFilter(pattern=PatternType.UNKNOWN), "Unknown patternFilter."),
        (AclFilter(operation=Operation.UNKNOWN), "Unknown entryFilter."),
        (AclFilter(permission=Permission.UNKNOWN), "Unknown entryFilter."),
    ],
)
def test_a_filter_with_an_unknown_part_is_refused(asked: AclFilter, why: str) -> None:
    check_filter(AclFilter())
    with pytest.raises(Refused) as refused:
        check_filter(asked)
    assert (refused.value.error, refused.value.why) == (INVALID_REQUEST, why)


def test_a_description_is_by_resource_and_in_order() -> None:
    write, prefixed = allow(Operation.WRITE, "a"), allow(Operation.READ, "a", pattern=PatternType.PREFIXED)
    read = allow(Operation.READ, "a", "User:bob")
    assert described([read, prefixed, write, allow(Operation.READ, "b")], AclFilter(name="a")) == {
        (ResourceType.TOPIC, "a", PatternType.LITERAL): [write, read],
        (ResourceType.TOPIC, "a", PatternType.PREFIXED): [prefixed],
    }


def test_a_principal_is_split_at_its_first_colon() -> None:
    assert parse_principal("User:CN=a:b") == Principal("User", "CN=a:b")
    with pytest.raises(ValueError, match="principalType:principalName but got alice"):
        parse_principal("alice")


def test_super_users_stand_between_semicolons() -> None:
    assert parse_super_users(" User:CN=a,O=b ;User:c;; ") == {"User:CN=a,O=b", "User:c"}
    assert parse_super_users("") == frozenset()
    with pytest.raises(ValueError, match="got admin"):
        parse_super_users("User:a;admin")
