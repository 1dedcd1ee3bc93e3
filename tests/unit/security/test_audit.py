"""Audit events: their JSON, what it leaves out, and how many one may cause."""

from __future__ import annotations

import json

from penstock.model.security import Operation, PatternType, Permission, ResourceType
from penstock.security.acls import AclEntry
from penstock.security.audit import Allowances, Event, Kind, Resource, Result, rfc3339, rule_of
from penstock.security.authorizer import Rule, Verdict

DENY = AclEntry(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.WRITE, Permission.DENY
)  # fmt: skip


def test_a_denial_names_who_what_where_and_the_rule() -> None:
    rule, acl = rule_of(Verdict(False, Rule.ACL, DENY))
    event = Event(
        Kind.AUTHORIZATION, Result.DENIED, 1_700_000_000_007, 3,
        "User:alice", "10.0.0.7", "CLIENTS", "shop", "Produce",
        operation="WRITE", resource=Resource("TOPIC", "orders"), rule=rule, acl=acl,
    )  # fmt: skip
    assert event.line().endswith(b"}\n")
    assert json.loads(event.line()) == {
        "time": "2023-11-14T22:13:20.007Z",
        "type": "authorization",
        "result": "denied",
        "node": 3,
        "principal": "User:alice",
        "address": "10.0.0.7",
        "listener": "CLIENTS",
        "client_id": "shop",
        "api": "Produce",
        "operation": "WRITE",
        "resource": {"type": "TOPIC", "name": "orders"},
        "rule": "ACL",
        "acl": "DENY WRITE on TOPIC LITERAL 'orders' to User:alice",
    }


def test_a_login_tells_what_is_known_and_nothing_else() -> None:
    event = Event(Kind.LOGIN, Result.FAILED, 0, 1, address="::1", mechanism="PLAIN", name="bob", reason="no")
    assert json.loads(event.line()) == {
        "time": "1970-01-01T00:00:00.000Z",
        "type": "login",
        "result": "failed",
        "node": 1,
        "address": "::1",
        "mechanism": "PLAIN",
        "name": "bob",
        "reason": "no",
    }


def test_a_name_begins_no_line_and_is_cut() -> None:
    names = ("a\nb\r\x85\u2028", "x" * 100_000, "\ud800")
    for name in names:
        line = Event(Kind.LOGIN, Result.FAILED, 0, 1, name=name).line()
        assert line.decode("ascii").splitlines() == [line.decode().rstrip("\n")]
        assert len(line) < 3_000
        assert json.loads(line)["name"][:1] == name[:1]


def test_the_rule_without_an_acl() -> None:
    assert rule_of(Verdict(True, Rule.SUPER_USER)) == ("SUPER_USER", "")
    assert rule_of(Verdict(False, Rule.NO_ACL)) == ("NO_ACL", "")
    assert rule_of(None) == ("NO_AUTHORIZER", "")


def test_times_are_exact_to_the_millisecond() -> None:
    assert rfc3339(1_699_999_999_999) == "2023-11-14T22:13:19.999Z"


def test_one_may_cause_a_burst_and_then_so_many_a_second() -> None:
    allowances = Allowances(per_second=10, burst=3)
    assert [allowances.take("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert allowances.take("b", 0.0)
    assert [allowances.take("a", 100.0) for _ in range(2)] == [True, False]
    assert [allowances.take("a", 10_000.0) for _ in range(4)] == [True, True, True, False]


def test_the_table_of_allowances_is_bounded() -> None:
    allowances = Allowances(most=10)
    for number in range(1_000):
        allowances.take(f"u{number}", 0.0)
    assert len(allowances) == 10
