"""`penstock group …` against a node: what it prints, its plans, its exit codes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.command import Running, Said, penstock


@pytest.fixture(scope="module")
def read(bootstrap: str) -> str:
    """A topic of two partitions with ten records each, of which group `readers` has read all of one."""
    penstock("topic", "create", "read", "-p", "2", "-b", bootstrap)
    for partition in ("0", "1"):
        penstock("produce", "read", "-p", partition, "-b", bootstrap, stdin="v\n" * 10)
    return bootstrap


def group_with(bootstrap: str, name: str, *offsets: int) -> None:
    text = "".join(f"read {partition} {offset}\n" for partition, offset in enumerate(offsets))
    assert penstock("group", "seek", name, "--to-file", "-", "--yes", "-b", bootstrap, stdin=text).code == 0


def positions(bootstrap: str, name: str) -> dict[int, int]:
    (found,) = penstock("group", "lag", name, "--format", "json", "-b", bootstrap).data
    return {each["partition"]: each["committed"] for each in found["partitions"]}


def test_groups_are_listed_and_filtered(read: str) -> None:
    group_with(read, "listed", 3, 4)
    listed = penstock("group", "list", "--format", "json", "-b", read)
    assert {"id": "listed", "protocol_type": "", "state": "Empty", "type": "classic", "coordinator": 1} in listed.data
    assert "listed" in penstock("group", "list", "--state", "empty", "-b", read).out
    assert "listed" not in penstock("group", "list", "--state", "stable", "-b", read).out
    assert "listed" not in penstock("group", "list", "--type", "consumer", "-b", read).out
    heading = penstock("group", "list", "-b", read).out.splitlines()[0].split()
    assert heading == ["GROUP", "STATE", "TYPE", "PROTOCOL", "COORDINATOR"]


def test_lag_is_counted_per_partition_and_in_total(read: str) -> None:
    group_with(read, "behind", 3, 10)
    (found,) = penstock("group", "lag", "behind", "--format", "json", "-b", read).data
    assert found["lag"] == 7
    assert [
        (p["topic"], p["partition"], p["committed"], p["start"], p["end"], p["lag"]) for p in found["partitions"]
    ] == [
        ("read", 0, 3, 0, 10, 7),
        ("read", 1, 10, 0, 10, 0),
    ]
    text = penstock("group", "lag", "behind", "-b", read).out.splitlines()
    assert text[0] == "behind  (lag 7)"
    assert text[2].split() == ["read", "0", "3", "0", "10", "7", "-"]


def test_without_a_name_the_totals_of_all_groups_are_shown(read: str) -> None:
    group_with(read, "one", 3, 10)
    group_with(read, "other", 0, 0)
    lines = [line.split() for line in penstock("group", "lag", "-b", read).out.splitlines()]
    assert lines[0] == ["GROUP", "LAG", "PARTITIONS"]
    assert ["one", "7", "2"] in lines
    assert ["other", "20", "2"] in lines
    found = {each["group"]: each["lag"] for each in penstock("group", "lag", "--format", "json", "-b", read).data}
    assert (found["one"], found["other"]) == (7, 20)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe_shows_members_and_what_they_read(read: str, protocol: str, tmp_path: Path) -> None:
    name = f"members-{protocol}"
    arguments = ("consume", "read", "-g", name, "--protocol", protocol, "-f", "text", "-b", read)
    with Running(*arguments, log=tmp_path / "log") as member:
        member.wait_to_say(r"(v\n){20}")
        (found,) = penstock("group", "describe", name, "--format", "json", "-b", read).data
        assert (found["type"], found["state"], found["coordinator"]) == (protocol, "Stable", 1)
        assert found["assignor"] == {"classic": "range", "consumer": "uniform"}[protocol]
        (only,) = found["members"]
        assert only["assignment"] == {"read": [0, 1]}
        assert only["subscription"] == ["read"]
        assert only["client_id"].startswith("penstock-cli")
        text = penstock("group", "describe", name, "-b", read).out
        assert "reads       read:0,1" in text
        refused = penstock("group", "seek", name, "--to", "start", "--yes", "-b", read)
        assert refused.code == 1
        assert "has 1 member; it is moved when it has none" in refused.err
        refused = penstock("group", "delete", name, "--yes", "-b", read)
        assert refused.code == 1
        assert "NON_EMPTY_GROUP" in refused.err
        assert member.stop(signal.SIGINT) == 130
    assert positions(read, name) == {0: 10, 1: 10}


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (("--to", "start"), {0: 0, 1: 0}),
        (("--to", "end"), {0: 10, 1: 10}),
        (("--to", "7"), {0: 7, 1: 7}),
        (("--to", "-2"), {0: 8, 1: 8}),
        (("--to", "99"), {0: 10, 1: 10}),
        (("--to", "@-1h"), {0: 0, 1: 0}),
        (("--to", "@+1h"), {0: 10, 1: 10}),
        (("--to", "2", "--topic", "read:1"), {0: 5, 1: 2}),
    ],
)
def test_seek_plans_first_and_moves_when_told(read: str, to: tuple[str, ...], expected: dict[int, int]) -> None:
    group_with(read, "moved", 5, 5)
    plan = penstock("group", "seek", "moved", *to, "--format", "json", "-b", read)
    assert plan.code == 0
    assert plan.data["executed"] is False
    assert {5: 5, **{m["partition"]: m["to"] for m in plan.data["moves"]}}.items() >= {
        m["partition"]: expected[m["partition"]] for m in plan.data["moves"]
    }.items()
    assert "--yes carries it out" in plan.err
    assert positions(read, "moved") == {0: 5, 1: 5}
    done = penstock("group", "seek", "moved", *to, "--execute", "-b", read)
    assert done.code == 0
    assert positions(read, "moved") == expected


def test_a_group_goes_where_another_is(read: str) -> None:
    group_with(read, "leader-of-two", 4, 6)
    assert penstock("group", "seek", "follower", "--to-group", "leader-of-two", "--yes", "-b", read).code == 0
    assert positions(read, "follower") == {0: 4, 1: 6}


def test_offsets_are_forgotten_and_groups_deleted_only_when_told(read: str) -> None:
    group_with(read, "gone", 1, 2)
    plan = penstock("group", "offset-delete", "gone", "-t", "read:0", "--format", "json", "-b", read).data
    assert plan == {"executed": False, "moves": [{"topic": "read", "partition": 0, "was": 1, "to": None}]}
    assert positions(read, "gone") == {0: 1, 1: 2}
    assert penstock("group", "offset-delete", "gone", "-t", "read:0", "--yes", "-b", read).code == 0
    assert positions(read, "gone") == {1: 2}
    plan = penstock("group", "delete", "gone", "--format", "json", "-b", read)
    assert plan.data == {
        "executed": False,
        "groups": [{"group": "gone", "state": "Empty", "members": 0, "positions": 1}],
    }
    assert "nothing was deleted" in plan.err
    assert penstock("group", "delete", "gone", "--yes", "-b", read).code == 0
    assert penstock("group", "describe", "gone", "-b", read).code == 3


def test_lag_is_watched_until_ctrl_c(read: str, tmp_path: Path) -> None:
    group_with(read, "watched", 3, 3)
    arguments = ("group", "lag", "watched", "-w", "--interval", "0.1", "--format", "json", "-b", read)
    with Running(*arguments, log=tmp_path / "log") as watching:
        watching.wait_to_say(r'"lag": 14(.*\n)+.*"lag": 14')
        assert watching.stop(signal.SIGINT) == 0
        assert json.loads(watching.words.splitlines()[0])[0]["group"] == "watched"


def test_a_lag_is_explained(read: str) -> None:
    group_with(read, "left", 3, 10)
    said = penstock("group", "explain", "left", "--over", "0", "-b", read)
    assert said.code == 10
    lines = said.out.splitlines()
    assert lines[0].startswith("group left (Empty, 0 members) is 7 records behind in 1 of 2 partitions, the oldest")
    assert "problem: nobody reads: group left has no members" in lines
    told = penstock("group", "explain", "left", "--over", "0", "--format", "json", "-b", read)
    assert told.code == 10
    assert (told.data["group"], told.data["lag"], told.data["members"]) == ("left", 7, 0)
    assert [each["kind"] for each in told.data["findings"]] == ["nobody_reads"]
    assert [(each["partition"], each["lag"]) for each in told.data["partitions"]] == [(0, 7), (1, 0)]
    assert told.data["partitions"][0]["behind_ms"] == told.data["behind_ms"] > 0
    group_with(read, "left", 10, 10)
    well = penstock("group", "explain", "left", "--over", "0", "-b", read)
    assert (well.code, well.out.splitlines()[-1]) == (0, "nothing is wrong with it")


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "absent"),
        ("explain", "absent", "--over", "0"),
        ("lag", "absent"),
        ("delete", "absent"),
        ("seek", "absent", "--to", "start"),
        ("seek", "absent", "--to-group", "absent-too"),
        ("offset-delete", "absent", "-t", "read"),
    ],
)
def test_a_group_that_is_not_there_is_exit_code_3(read: str, arguments: tuple[str, ...]) -> None:
    said: Said = penstock("group", *arguments, "-b", read)
    assert (said.code, said.out) == (3, "")
    assert "absent" in said.err
    assert "GROUP_ID_NOT_FOUND" in said.err


@pytest.mark.parametrize(
    ("arguments", "stdin", "hint"),
    [
        (("seek", "g"), "", "give one of"),
        (("seek", "g", "--to", "1", "--to-group", "h"), "", "give one of"),
        (("seek", "g", "--to", "soon"), "", "is no offset"),
        (("seek", "g", "--to", "5:9"), "", "one place is wanted"),
        (("seek", "g", "--to-file", "-"), "a b c\n", "line 1 is not TOPIC PARTITION OFFSET"),
        (("seek", "g", "--to", "1", "-t", "t:x"), "", "neither TOPIC nor TOPIC:0,1"),
        (("offset-delete", "g"), "", "say which positions"),
    ],
)
def test_what_makes_no_sense_is_exit_code_2(read: str, arguments: tuple[str, ...], stdin: str, hint: str) -> None:
    said = penstock("group", *arguments, "-b", read, stdin=stdin)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err
