"""Who is looked at when, and whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.agent.inputs.tail.schedule import Looks, Turns


@dataclass(eq=False)
class File:
    name: str
    interval_ms: float = 0.0
    ticket: int = 0
    queued: bool = False


def looks_within(looks: Looks[File], until_ms: float, changed: set[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    while (now_ms := looks.next_ms()) is not None and now_ms <= until_ms:
        for file in looks.due(now_ms):
            counts[file.name] = counts.get(file.name, 0) + 1
            looks.looked(file, now_ms, changed=file.name in changed)
    return counts


def test_busy_files_are_looked_at_often_and_quiet_ones_ever_more_rarely() -> None:
    looks = Looks[File](50, 2000)
    looks.add(File("busy"), 0)
    looks.add(File("quiet"), 0)
    counts = looks_within(looks, 20_000, {"busy"})
    assert counts["busy"] == 401
    assert 10 <= counts["quiet"] <= 17


def test_thousands_of_quiet_files_wake_nobody_more_often_than_the_ticks() -> None:
    looks = Looks[File](50, 2000)
    for number in range(1000):
        looks.add(File(str(number)), number * 1.7)
    moments = set()
    while (now_ms := looks.next_ms()) is not None and now_ms <= 10_000:
        moments.add(now_ms)
        looks.all_quiet(looks.due(now_ms), now_ms)
    assert len(moments) <= 10_000 / 50 + 1


def test_a_file_that_was_taken_off_or_added_again_is_looked_at_once() -> None:
    looks = Looks[File](50, 2000)
    gone, again = File("gone"), File("again")
    looks.add(gone, 0)
    looks.add(again, 0)
    gone.ticket = 0
    looks.add(again, 0)
    assert [file.name for file in looks.due(1000)] == ["again"]


def test_turns_go_round() -> None:
    turns, files = Turns[File](), [File("a"), File("b"), File("c")]
    for file in files:
        turns.want(file)
        turns.want(file)
    order = []
    for _ in range(6):
        file = turns.next()
        assert file is not None
        order.append(file.name)
        turns.want(file)
    assert order == ["a", "b", "c", "a", "b", "c"]
    first = File("first")
    turns.want(first, first=True)
    assert turns.next() is first
    assert len(turns) == 3
