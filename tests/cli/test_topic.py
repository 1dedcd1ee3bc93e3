"""`penstock topic …` against a node: what it prints where, and its exit codes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import termios

import pytest

from penstock.testing import broker
from tests.cli.command import DEADLINE_S, PENSTOCK, penstock
from tests.patience import within


def test_a_topic_is_created_listed_and_described(bootstrap: str) -> None:
    made = penstock("topic", "create", "seen", "-p", "3", "-c", "retention.ms=86400000", "-b", bootstrap)
    assert made == (0, "", "created seen\n")

    listed = penstock("topic", "list", "-b", bootstrap)
    assert listed.code == 0
    heading, *rows = [line.split() for line in listed.out.splitlines()]
    assert heading == ["NAME", "PARTITIONS", "REPLICAS"]
    assert ["seen", "3", "1"] in rows

    (found,) = penstock("topic", "describe", "seen", "--format", "json", "-b", bootstrap).data
    assert found["configs"] == {"retention.ms": "86400000"}
    assert [(p["partition"], p["leader"], p["isr"], p["start"], p["end"]) for p in found["partitions"]] == [
        (0, 1, [1], 0, 0),
        (1, 1, [1], 0, 0),
        (2, 1, [1], 0, 0),
    ]


def test_text_for_people_has_offsets_and_configs(bootstrap: str) -> None:
    penstock("topic", "create", "readable", "-c", "cleanup.policy=compact", "-b", bootstrap)
    said = penstock("topic", "describe", "readable", "-b", bootstrap)
    assert said.out.splitlines()[1] == "  cleanup.policy = compact"
    assert said.out.splitlines()[2].split() == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END"]
    assert said.err == ""


def test_yaml_says_the_same_as_json(bootstrap: str) -> None:
    penstock("topic", "create", "twice", "-b", bootstrap)
    data = penstock("topic", "describe", "twice", "--format", "json", "-b", bootstrap).data
    yaml = penstock("topic", "describe", "twice", "--format", "yaml", "-b", bootstrap).out
    assert f'- name: "twice"\n  id: "{data[0]["id"]}"\n  internal: false\n  partitions:\n    - partition: 0\n' in yaml


def test_no_topics_is_no_data_and_a_hint() -> None:
    with broker() as empty:
        said = penstock("topic", "list", "-b", empty.bootstrap_servers)
        assert (said.code, said.out) == (0, "")
        assert "penstock topic create" in said.err
        assert penstock("topic", "list", "--format", "json", "-b", empty.bootstrap_servers).data == []


def test_the_bootstrap_address_may_come_from_the_environment(bootstrap: str) -> None:
    assert penstock("topic", "list", environment={"PENSTOCK_BOOTSTRAP": bootstrap}).code == 0


def test_a_second_creation_fails_unless_it_was_foreseen(bootstrap: str) -> None:
    first = penstock("topic", "create", "again", "--format", "json", "-b", bootstrap).data
    assert first["created"] is True
    assert penstock("topic", "create", "again", "-b", bootstrap).code == 1
    second = penstock("topic", "create", "again", "--if-not-exists", "--format", "json", "-b", bootstrap)
    assert second.code == 0
    assert second.data == {"name": "again", "id": first["id"], "created": False}


def test_a_dry_run_creates_nothing(bootstrap: str) -> None:
    said = penstock("topic", "create", "maybe", "--dry-run", "-b", bootstrap)
    assert said == (0, "", "maybe could be created\n")
    assert penstock("topic", "describe", "maybe", "-b", bootstrap).code == 3


def test_configs_are_set_and_taken_back(bootstrap: str) -> None:
    penstock("topic", "create", "tuned", "-b", bootstrap)
    assert penstock("topic", "alter", "tuned", "-c", "retention.ms=5", "-c", "flush.ms=9", "-b", bootstrap).code == 0
    assert penstock("topic", "alter", "tuned", "-d", "flush.ms", "-b", bootstrap).code == 0
    (found,) = penstock("topic", "describe", "tuned", "--format", "json", "-b", bootstrap).data
    assert found["configs"] == {"retention.ms": "5"}


def test_partitions_are_added_but_never_taken_away(bootstrap: str) -> None:
    penstock("topic", "create", "grown", "-p", "2", "-b", bootstrap)
    assert penstock("topic", "add-partitions", "grown", "-p", "4", "-b", bootstrap).code == 0
    (found,) = penstock("topic", "describe", "grown", "--format", "json", "-b", bootstrap).data
    assert len(found["partitions"]) == 4
    fewer = penstock("topic", "add-partitions", "grown", "-p", "1", "-b", bootstrap)
    assert fewer.code == 1
    assert "INVALID_PARTITIONS" in fewer.err


def test_trimming_moves_the_log_start(bootstrap: str) -> None:
    from confluent_kafka import Producer

    penstock("topic", "create", "long", "-p", "2", "-b", bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(10):
        producer.produce("long", b"%d" % number, partition=number % 2)
    assert producer.flush(within(30)) == 0

    assert penstock("topic", "trim", "long", "-o", "3", "-p", "0", "-y", "--format", "json", "-b", bootstrap).data == [
        {"partition": 0, "start": 3}
    ]
    everything = penstock("topic", "trim", "long", "-b", bootstrap, stdin="y\n")
    assert everything.code == 0
    assert [line.split() for line in everything.out.splitlines()[1:]] == [["0", "5"], ["1", "5"]]
    beyond = penstock("topic", "trim", "long", "-o", "99", "-y", "-b", bootstrap)
    assert beyond.code == 1
    assert "the offset lies beyond its high watermark (OFFSET_OUT_OF_RANGE)" in beyond.err


def test_a_compacted_topic_cannot_be_trimmed(bootstrap: str) -> None:
    penstock("topic", "create", "compacted", "-c", "cleanup.policy=compact", "-b", bootstrap)
    said = penstock("topic", "trim", "compacted", "-y", "-b", bootstrap)
    assert said.code == 1
    assert "only topics with cleanup.policy=delete can be trimmed (POLICY_VIOLATION)" in said.err


def test_deleting_asks_first(bootstrap: str) -> None:
    penstock("topic", "create", "precious", "-b", bootstrap)
    for answer in ("n\n", ""):
        kept = penstock("topic", "delete", "precious", "-b", bootstrap, stdin=answer)
        assert kept.code == 1
        assert "nothing was changed" in kept.err
    assert penstock("topic", "delete", "precious", "-b", bootstrap, stdin="y\n").code == 0
    assert penstock("topic", "describe", "precious", "-b", bootstrap).code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "absent"),
        ("delete", "absent", "-y"),
        ("alter", "absent", "-c", "retention.ms=5"),
        ("add-partitions", "absent", "-p", "2"),
        ("trim", "absent", "-y"),
    ],
)
def test_what_is_not_there_is_exit_code_3_and_named(bootstrap: str, arguments: tuple[str, ...]) -> None:
    said = penstock("topic", *arguments, "-b", bootstrap)
    assert (said.code, said.out) == (3, "")
    assert said.err == "penstock: topic 'absent' does not exist (UNKNOWN_TOPIC_OR_PARTITION)\n"


def test_a_partition_that_is_not_there_is_named_and_nothing_is_trimmed(bootstrap: str) -> None:
    penstock("topic", "create", "short", "-b", bootstrap)
    said = penstock("topic", "trim", "short", "-p", "0", "-p", "5", "-y", "-b", bootstrap)
    assert said.code == 3
    assert "partition 5 of topic 'short' does not exist" in said.err


def test_what_is_not_allowed_is_exit_code_4() -> None:
    with broker({"delete.topic.enable": False}) as careful:
        penstock("topic", "create", "kept", "-b", careful.bootstrap_servers)
        said = penstock("topic", "delete", "kept", "-y", "-b", careful.bootstrap_servers)
    assert said.code == 4
    assert "TOPIC_DELETION_DISABLED" in said.err


@pytest.mark.parametrize("where", ["127.0.0.1:1", "nowhere.invalid:9092"])
def test_a_broker_that_is_not_there_is_exit_code_5(where: str) -> None:
    said = penstock("topic", "list", "-b", where)
    assert (said.code, said.out) == (5, "")
    assert where in said.err
    assert "penstock dev" in said.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("create", "x", "-c", "retention.ms"), "is not key=value"),
        (("create", "x", "-p", "0"), "--partitions"),
        (("alter", "x"), "give -c KEY=VALUE or -d KEY"),
        (("list", "-b", "host:port"), "expected host:port"),
        (("list", "-b", "127.0.0.1:99999"), "ports go from 1 to 65535"),
        (("list", "--format", "xml"), "'text', 'json', 'yaml'"),
        (("shrink",), "No such command"),
    ],
)
def test_a_command_that_makes_no_sense_is_exit_code_2(arguments: tuple[str, ...], hint: str) -> None:
    said = penstock("topic", *arguments)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ("cleanup.policy=soon", "cleanup.policy"),
        ("retention.mss=1", "retention.mss; did you mean retention.ms?"),
        ("segment.bytes=1", "segment.bytes"),
    ],
)
def test_a_bad_config_is_refused_by_name(bootstrap: str, config: str, hint: str) -> None:
    said = penstock("topic", "create", "never", "-c", config, "-b", bootstrap)
    assert said.code == 1
    assert hint in said.err
    assert "INVALID_CONFIG" in said.err


def test_a_config_that_nobody_knows_is_no_change_and_the_one_that_was_meant_is_named(bootstrap: str) -> None:
    assert penstock("topic", "create", "meant", "-b", bootstrap).code == 0
    said = penstock("topic", "alter", "meant", "-c", "cleanup.polcy=compact", "-b", bootstrap)
    assert (said.code, "did you mean cleanup.policy?" in said.err) == (1, True)
    said = penstock("topic", "alter", "meant", "-d", "cleanup.polcy", "-b", bootstrap)
    assert (said.code, "did you mean cleanup.policy?" in said.err) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "describe", "suggestd"),
        ("topic", "alter", "suggestd", "-c", "retention.ms=1"),
        ("topic", "delete", "suggestd", "--yes"),
        ("topic", "add-partitions", "suggestd", "-p", "3"),
        ("topic", "trim", "suggestd", "--yes"),
        ("consume", "suggestd", "-e"),
        ("consume", "suggestd", "-g", "g"),
        ("tail", "suggestd"),
        ("produce", "suggestd"),
        ("cluster", "partitions", "list", "suggestd"),
    ],
)
def test_a_topic_that_is_not_there_is_told_with_the_nearest_that_is(bootstrap: str, command: tuple[str, ...]) -> None:
    penstock("topic", "create", "suggested", "--if-not-exists", "-b", bootstrap)
    said = penstock(*command, "-b", bootstrap)
    assert said.code == 3
    assert "'suggestd' does not exist; did you mean suggested?" in said.err


def test_a_config_that_is_not_there_is_told_with_the_nearest_that_is(bootstrap: str) -> None:
    created = penstock("topic", "create", "misspelt", "-c", "retention.mss=1", "-b", bootstrap)
    assert (created.code, "did you mean retention.ms?" in created.err) == (1, True)
    penstock("topic", "create", "misspelt", "-b", bootstrap)
    altered = penstock("topic", "alter", "misspelt", "-c", "clenup.policy=compact", "-b", bootstrap)
    assert (altered.code, "did you mean cleanup.policy?" in altered.err) == (1, True)


def test_configs_take_times_and_sizes(bootstrap: str) -> None:
    given = ("-c", "retention.ms=7d", "-c", "retention.bytes=1GiB")
    assert penstock("topic", "create", "amounts", *given, "-b", bootstrap).code == 0
    (found,) = penstock("topic", "describe", "amounts", "--format", "json", "-b", bootstrap).data
    assert found["configs"] == {"retention.ms": "604800000", "retention.bytes": "1073741824"}
    refused = penstock("topic", "alter", "amounts", "-c", "retention.ms=7x", "-b", bootstrap)
    assert (refused.code, "a time such as 7d" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(("tpic", "list"), "topic"), (("topics",), "topic"), (("topic", "lst"), "list"), (("cosume", "t"), "consume")],
)
def test_a_command_that_is_not_there_is_told_with_the_nearest_that_is(arguments: tuple[str, ...], meant: str) -> None:
    said = penstock(*arguments)
    assert said.code == 2
    assert f"Did you mean {meant!r}?" in said.err.replace('"', "'")


@pytest.mark.parametrize("columns", [60, 80])
def test_tables_fit_a_narrow_terminal_and_keep_their_ids_whole(bootstrap: str, columns: int) -> None:
    name = "a-topic-with-a-name-that-takes-most-of-a-narrow-terminal"
    penstock("topic", "create", name, "--if-not-exists", "-b", bootstrap)
    for command in (("topic", "list"), ("topic", "describe", name), ("cluster", "brokers"), ("group", "list")):
        lines = on_terminal(columns, *command, "-b", bootstrap)
        assert [line for line in lines if len(line) > columns and "  (id" not in line and not _one_cell(line)] == []
    assert any(name in line for line in on_terminal(columns, "topic", "list", "-b", bootstrap))


def _one_cell(line: str) -> bool:
    """Of a folded row: a heading and one word, which is never broken."""
    return len(line.split()) == 2


def on_terminal(columns: int, *arguments: str) -> list[str]:
    """What a command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen([*PENSTOCK, *arguments], stdout=theirs, stderr=theirs, env=environment) as command:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while chunk := os.read(ours, 4_096):
                said += chunk
        assert command.wait(within(DEADLINE_S)) == 0, said
    os.close(ours)
    return said.decode().replace("\r\n", "\n").splitlines()
