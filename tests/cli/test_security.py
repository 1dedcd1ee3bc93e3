"""`penstock user`, `penstock acl` and `penstock quota`: what they do, print and end with."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from penstock.cli.acl import acl as acl_group
from penstock.cli.options import examples_of
from penstock.model.config import BrokerSettings
from penstock.model.ports import Ports
from penstock.security.authorizer import Authorizer as Rules
from penstock.server.launch import dev_properties
from penstock.server.loops.ports import SystemClock
from penstock.server.node import Node
from penstock.server.reception.authorize import AclAuthorizer
from penstock.testing.memory_files import MemoryFiles
from penstock.testing.node_thread import NodeThread
from penstock.transport.net import AsyncioNet
from tests.cli.command import DEADLINE_S, PENSTOCK, Said, penstock
from tests.patience import within
from tests.walks.data_plane import TurnsOffload


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    """The address of a node whose ACLs decide. It listens in the plain, so everybody is the super user ANONYMOUS."""
    yield from served(Rules(["User:ANONYMOUS"]))


@pytest.fixture(scope="module")
def closed() -> Iterator[str]:
    """The address of a node where nobody may do anything."""
    yield from served(Rules())


def served(rules: Rules) -> Iterator[str]:
    def make() -> Node:
        properties = dev_properties("/data", port=0, overrides={"penstock.admin.listener": ""})
        net = AsyncioNet(asyncio.get_running_loop())
        ports = Ports(SystemClock(), MemoryFiles(), net, TurnsOffload(Random(1)))
        authorizer = AclAuthorizer(rules, lambda: 0.0)
        settings = BrokerSettings.load(properties)
        return Node(settings, ports, random=Random(1), formats_itself=True, authorizer=authorizer)

    running = NodeThread("secured", make, lambda _node: None)
    running.begin()
    running.wait_ready(within(30))
    try:
        yield f"127.0.0.1:{running.node.port}"
    finally:
        running.stop()


# Users


def users(address: str) -> dict[str, list[str]]:
    data = penstock("user", "list", "--format", "json", "-b", address).data
    return {each["user"]: [found["mechanism"] for found in each["credentials"]] for each in data}


def test_users_are_added_changed_listed_and_deleted(secured: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    added = penstock("user", "add", "alice", "--password-file", tmp_path / "password", "-b", secured)
    assert (added.code, added.err) == (0, "added user alice\n")
    only = ("--mechanism", "SCRAM-SHA-256", "--iterations", "8192")
    given = {"PASSWORD": "from the environment"}
    assert (
        penstock("user", "add", "bob", "--password-env", "PASSWORD", *only, "-b", secured, environment=given).code == 0
    )
    assert users(secured) == {"alice": ["SCRAM-SHA-256", "SCRAM-SHA-512"], "bob": ["SCRAM-SHA-256"]}
    table = penstock("user", "list", "-b", secured).out.splitlines()
    assert [line.split() for line in table[::3]] == [
        ["USER", "MECHANISM", "ITERATIONS"],
        ["bob", "SCRAM-SHA-256", "8192"],
    ]
    again = penstock("user", "add", "alice", "--password-stdin", "-b", secured, stdin="x\n")
    assert (again.code, "penstock user passwd alice" in again.err) == (1, True)
    assert penstock("user", "passwd", "bob", "--password-stdin", "-b", secured, stdin="other\n").code == 0
    assert users(secured)["bob"] == ["SCRAM-SHA-256"]
    for name in ("alice", "bob"):
        assert penstock("user", "delete", name, "--yes", "-b", secured).code == 0
    assert penstock("user", "list", "-b", secured) == Said(0, "", "no users\n")


def test_a_user_who_is_not_there_is_not_found(secured: str) -> None:
    for command in (("passwd", "nobody", "--password-stdin"), ("delete", "nobody", "--yes")):
        assert penstock("user", *command, "-b", secured, stdin="x\n").code == 3


@pytest.mark.parametrize(
    ("options", "stdin", "why"),
    [
        ((), "secret\n", "no terminal to ask at"),
        (("--password-stdin",), "\n", "the password is empty"),
        (("--password-stdin", "--password-env", "HOME"), "x", "exclude each other"),
        (("--password-env", "NO_SUCH_VARIABLE"), "", "the environment has no NO_SUCH_VARIABLE"),
        (("--password-file", "/no/such/file"), "", "does not exist"),
    ],
)
def test_a_password_that_is_not_given_well_is_asked_for_anew(options: tuple[str, ...], stdin: str, why: str) -> None:
    said = penstock("user", "add", "alice", *options, "-b", "127.0.0.1:1", stdin=stdin)
    assert (said.code, why in said.err) == (2, True), said.err


def test_at_a_terminal_the_password_is_asked_for_twice_and_not_shown(secured: str) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*PENSTOCK, "user", "add", "typed", "-b", secured],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = _typed(ours, b"Password of typed", b"typed-secret\n") + _typed(ours, b"Repeat", b"typed-secret\n")
    while chunk := _read(ours):
        seen += chunk
    os.close(ours)
    assert child.wait(within(DEADLINE_S)) == 0, seen
    assert b"typed-secret" not in seen
    assert "typed" in users(secured)


def _typed(terminal: int, prompt: bytes, answer: bytes) -> bytes:
    """Types an answer when it is asked for; what was seen until then."""
    seen = b""
    while prompt not in seen:
        chunk = _read(terminal)
        assert chunk, seen
        seen += chunk
    os.write(terminal, answer)
    return seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4_096)
    except OSError:  # the other end is gone
        return b""


# ACLs


def test_rules_are_made_listed_explained_and_removed(secured: str) -> None:
    def acl(*words: str) -> Said:
        return penstock("acl", *words, "-b", secured)

    assert acl("allow", "alice", "read,write", "topic:orders").code == 0
    assert acl("allow", "alice", "write", "topic:log-*", "--host", "10.0.0.7").code == 0
    denied = acl("deny", "User:alice", "write", "topic:orders")
    assert (denied.code, denied.err) == (0, "deny User:alice write topic:orders\n")
    data = acl("list", "--format", "json").data
    assert len(data) == 4
    assert data[-1] == {
        "principal": "User:alice",
        "operation": "write",
        "resource": "topic",
        "name": "orders",
        "pattern": "literal",
        "host": "*",
        "permission": "deny",
    }
    assert len(acl("list", "--resource", "topic:log-7", "--match", "--format", "json").data) == 1
    assert len(acl("list", "--permission", "deny", "--format", "json").data) == 1

    assert acl("explain", "alice", "READ", "topic:orders").out == (
        "allowed: ALLOW READ on TOPIC LITERAL 'orders' to User:alice\n"
    )
    refused = acl("explain", "User:alice", "write", "topic:orders", "--format", "json")
    assert (refused.code, refused.data["allowed"]) == (4, False)
    assert refused.data["rule"] == "DENY WRITE on TOPIC LITERAL 'orders' to User:alice"
    assert acl("explain", "alice", "write", "topic:log-1").code == 4
    assert acl("explain", "alice", "write", "topic:log-1", "--host", "10.0.0.7").code == 0
    unknown = acl("explain", "bob", "read", "topic:other")
    assert (unknown.code, unknown.out) == (4, "denied: no ACL is about the resource\n")
    # Nodes do not tell their super users, so a denial of one is true only of whoever is none.
    assert "bob may do it all the same if super.users has User:bob" in unknown.err
    assert "super.users" not in acl("explain", "bob", "read", "topic:other", "--super-user", "admin").err
    assert acl("explain", "bob", "read", "topic:other", "--super-user", "bob").code == 0

    removed = acl("remove", "--principal", "alice", "--resource", "topic:orders", "--yes", "--format", "json")
    assert (removed.code, len(removed.data)) == (0, 3)
    assert acl("remove", "--principal", "alice", "--resource", "topic:orders", "--yes").code == 3
    assert acl("remove", "--yes").code == 2
    assert acl("remove", "--all", "--yes").code == 0
    assert acl("list") == Said(0, "", "no ACLs\n")


@pytest.mark.parametrize(
    "words",
    [
        ("allow", "alice", "read", "table:orders"),
        ("allow", "alice", "reed", "topic:orders"),
        ("allow", "alice", "read", "topic"),
        ("list", "--match"),
        ("explain", "alice", "read", "topic:t", "--host", "example.com"),
    ],
)
def test_words_that_make_no_rule_are_a_usage_error(words: tuple[str, ...]) -> None:
    assert penstock("acl", *words, "-b", "127.0.0.1:1").code == 2


def test_every_example_of_acls_works(secured: str, tmp_path: Path) -> None:
    for command in acl_group.commands.values():
        for example in examples_of(command):
            line = example.replace("penstock ", f"{' '.join(PENSTOCK)} ", 1)
            done = subprocess.run(
                ["bash", "-c", line],
                env={**os.environ, "PENSTOCK_BOOTSTRAP": secured},
                capture_output=True,
                text=True,
                timeout=within(DEADLINE_S),
            )
            assert done.returncode == 0, f"$ {example}\n{done.stdout}{done.stderr}"


# Limits


def test_limits_are_set_listed_and_removed(secured: str) -> None:
    def quota(*words: str) -> Said:
        return penstock("quota", *words, "-b", secured)

    done = quota("set", "--user", "alice", "producer_byte_rate=10MiB", "request_percentage=12.5")
    assert (done.code, done.err.splitlines()) == (
        0, ["user alice: producer_byte_rate = 10485760", "user alice: request_percentage = 12.5"],
    )  # fmt: skip
    assert quota("set", "--user", "alice", "--client-id-default", "consumer_byte_rate=1024").code == 0
    assert quota("set", "--ip", "10.0.0.7", "connection_creation_rate=5").code == 0
    assert quota("list", "--user", "alice", "--format", "json").data == [
        {"entity": {"user": "alice"}, "limits": {"producer_byte_rate": 10485760.0, "request_percentage": 12.5}},
        {"entity": {"user": "alice", "client-id": None}, "limits": {"consumer_byte_rate": 1024.0}},
    ]
    assert "ip 10.0.0.7" in quota("list").out
    assert quota("remove", "--user", "alice", "request_percentage").code == 0
    assert quota("remove", "--user", "alice", "request_percentage").code == 3
    assert quota("remove", "--user", "alice").code == 0
    assert quota("remove", "--user", "alice", "--client-id-default").code == 0
    assert quota("remove", "--ip", "10.0.0.7").code == 0
    assert quota("list") == Said(0, "", "no limits\n")


@pytest.mark.parametrize(
    "words",
    [
        ("set", "producer_byte_rate=1"),
        ("set", "--user", "a", "bytes=1"),
        ("set", "--user", "a", "producer_byte_rate=much"),
        ("set", "--user", "a", "--user-default", "producer_byte_rate=1"),
        ("set", "--user", "", "producer_byte_rate=1"),
    ],
)
def test_limits_that_make_no_sense_are_a_usage_error(words: tuple[str, ...]) -> None:
    assert penstock("quota", *words, "-b", "127.0.0.1:1").code == 2


def test_what_the_cluster_refuses_is_a_failure(secured: str) -> None:
    said = penstock("quota", "set", "--user", "a", "connection_creation_rate=1", "-b", secured)
    assert (said.code, "Invalid configuration key" in said.err) == (1, True)


# Exit codes


@pytest.mark.parametrize(
    "words",
    [
        ("user", "list"),
        ("user", "delete", "alice", "--yes"),
        ("acl", "list"),
        ("acl", "allow", "alice", "read", "topic:t"),
        ("acl", "explain", "alice", "read", "topic:t"),
        ("quota", "list"),
        ("quota", "set", "--user", "a", "producer_byte_rate=1"),
    ],
)
def test_who_may_not_ends_with_4_and_who_finds_nobody_with_5(closed: str, words: tuple[str, ...]) -> None:
    said = penstock(*words, "-b", closed)
    assert (said.code, "CLUSTER_AUTHORIZATION_FAILED" in said.err) == (4, True)
    assert penstock(*words, "-b", "127.0.0.1:1").code == 5
