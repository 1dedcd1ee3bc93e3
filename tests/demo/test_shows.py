"""What is shown of a demo, on a terminal and elsewhere, and what is told at its end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from penstock.demo import chart
from penstock.demo.checks import Verdict
from penstock.demo.lines import EVERY_S, LineShow, show_for, standing
from penstock.demo.screen import ScreenShow, bar, clock, drawn, size
from penstock.demo.sight import KILLED, UP, Event, PartitionSight, Rate, Sight, TableSight
from penstock.demo.summary import answer_lines, command_lines, print_checks, wrapped


def seen() -> Sight:
    """A node is dead, the table is ten lines behind."""
    sight = Sight(elapsed_s=41.0, now_ms=10_000, now="node 2 is gone")
    sight.nodes = {1: UP, 2: KILLED, 3: UP}
    sight.partitions = [PartitionSight(0, 3, (1, 3), (1, 2, 3), 60), PartitionSight(1, 1, (1, 3), (1, 2, 3), 40)]
    sight.log.lines, sight.log.clock, sight.log.rotations = 100, "08:15", 2
    sight.log.moments.extend([(1_000, 50), (7_000, 90), (9_000, 100)])
    sight.agent.state, sight.agent.sent, sight.agent.behind_bytes = UP, 100, 12_300
    sight.table = TableSight(rows=85, dead=5, version=3, commits=3, stands={0: 55, 1: 35})
    sight.events.append(Event(38.0, "node 2 is gone", "crash"))
    return sight


def plain(width: int = 110) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width), out


def printed(width: int, sight: Sight) -> str:
    console, out = plain(width)
    console.print(drawn(sight, 200, width))
    return out.getvalue()


def test_the_picture_has_everything_that_one_wants_to_know() -> None:
    text = printed(110, seen())
    for words in (
        "NOW  node 2 is gone", "access.log 08:15, rotated 2×", "web-1: 12.3 KB behind", "lag 10, starting",
        "lake/access: 3 commits, 3 s behind", "node 2 ✖ killed", "leads", "in sync", "away",
        "0:38  ✖ node 2 is gone", "0:41",
    ):  # fmt: skip
        assert words in text


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_line_of_the_picture_is_wider_than_the_terminal_or_torn(width: int) -> None:
    lines = printed(width, seen()).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == len(printed(110, seen()).splitlines())


def test_no_more_lines_are_sent_than_are_written() -> None:
    sight = seen()
    sight.agent.sent = 107
    told = {line.split()[1]: line for line in printed(110, sight).splitlines()[3:5]}
    assert " 107 " in told["log"]
    assert " 107 " in told["agent"]


def test_before_anything_is_known_there_is_a_picture_too() -> None:
    assert "three nodes start" in printed(110, Sight())


def test_a_table_is_as_old_as_the_first_line_that_it_lacks() -> None:
    sight = seen()
    assert (sight.stale_s, sight.behind_records, sight.records) == (3.0, 10, 100)
    sight.table.rows = 95
    assert sight.stale_s == 0.0
    assert Sight().stale_s is None


def test_a_rate_begins_anew_with_a_count_that_does() -> None:
    rate = Rate()
    for at_s, value in ((0.0, 0.0), (1.0, 100.0), (2.0, 200.0)):
        rate.saw(at_s, value)
    assert rate.per_s == 100.0
    rate.saw(3.0, 5.0)
    assert rate.per_s == 0.0


def test_without_a_terminal_events_and_now_and_then_a_standing_are_lines() -> None:
    console, out = plain()
    show = show_for(console, 200)
    assert isinstance(show, LineShow)
    sight = seen()
    show.start()
    show.tell(sight.events[0])
    show.draw(sight)
    sight.elapsed_s += EVERY_S / 2
    show.draw(sight)
    show.close()
    assert out.getvalue().splitlines() == ["  0:38  ✖ node 2 is gone", standing(seen())]


def test_a_terminal_keeps_what_happened_when_the_picture_goes() -> None:
    out = io.StringIO()
    show = show_for(Console(file=out, width=110, force_terminal=True, color_system=None), 200)
    assert isinstance(show, ScreenShow)
    show.start()
    show.tell(seen().events[0])
    show.draw(seen())
    show.close()
    assert out.getvalue().endswith("  0:38  ✖ node 2 is gone\n")


def test_a_check_that_failed_cannot_be_missed() -> None:
    console, out = plain()
    print_checks(console, [Verdict("gaps", "0", True), Verdict("lines", "3 ≠ 2", False)])
    marks = [line.split() for line in out.getvalue().splitlines() if line.strip()][1:]
    assert marks == [["✔", "gaps", "0"], ["✖", "FAILED", "lines", "3", "≠", "2"]]


def test_columns_are_as_high_as_their_values() -> None:
    rows = [line.plain for line in chart.columns([0, 4, 8], [0, 0, 4], height=2)]
    assert rows == ["      ██ ", "   ██ ██ "]
    assert chart.labels(["00", "01", "02", "03"], 2) == "00    02    "


def test_the_answer_names_the_worst_hour() -> None:
    hours = [{"hour": 13, "requests": 100, "failed": 1}, {"hour": 14, "requests": 80, "failed": 20}]
    classes = [{"class": 2, "requests": 159, "p95_s": 0.1}, {"class": 5, "requests": 21, "p95_s": 2.0}]
    lines = [line.plain for line in answer_lines(hours, classes, 106)]
    assert "at 14:00 something was down: 25% of the requests failed" in lines
    assert lines[-1].startswith("5xx  ███")
    assert "21  failed" in lines[-1]


DAY = [{"hour": hour, "requests": 15_099 - hour, "failed": hour} for hour in range(24)]
CLASSES = [{"class": kind, "requests": 10_000 * kind, "p95_s": 0.12} for kind in (2, 3, 4, 5)]


@pytest.mark.parametrize("room", [56, 76, 106])
def test_the_answer_fits_a_narrow_terminal_and_loses_no_word_that_matters(room: int) -> None:
    lines = [line.plain.rstrip() for line in answer_lines(DAY, CLASSES, room)]
    assert max(map(len, lines)) <= room
    text = "\n".join(lines)
    assert "15,099 requests in the busiest hour" in text
    assert [line.endswith("p95 0.12 s") for line in lines[-4:]] == [True] * 4
    assert ("not found, not allowed" in text) == (room > 56)


def test_what_a_command_is_for_stands_above_it_where_there_is_no_room_behind() -> None:
    commands = [("penstock dev --demo --keep", "the same, and leaves it up to look around"), ("penstock dev", "yours")]
    behind = [line.plain for line in command_lines(commands, 76, aligned=True)]
    assert behind[1] == "penstock dev                # yours"
    assert [line.plain for line in command_lines(commands, 40, aligned=True)] == [
        "# the same, and leaves it up to look",
        "around",
        "penstock dev --demo --keep",
        behind[1],
    ]
    assert wrapped("one twothreefour five", 8) == ["one", "twothreefour", "five"]


@pytest.mark.parametrize("height", [24, 30, 60])
def test_the_picture_is_no_higher_than_the_terminal(height: int) -> None:
    sight = seen()
    sight.partitions.append(PartitionSight(2, 1, (1, 3), (1, 2, 3), 40))
    sight.events.extend(Event(39.0 + number, f"event {number}", "step") for number in range(20))
    console, out = plain(80)
    console.print(drawn(sight, 200, 80, height))
    lines = out.getvalue().splitlines()
    assert len(lines) < height
    assert "event 19" in lines[-2]


def test_what_happened_is_broken_between_words() -> None:
    out = io.StringIO()
    show = ScreenShow(Console(file=out, width=40, force_terminal=True, color_system=None), 200)
    words = "the leader of access-0 is killed, and another one takes its partitions over"
    show.start()
    show.tell(Event(5.0, words, "crash"))
    show.close()
    left = out.getvalue().rpartition("\x1b[2K")[2].split()
    assert left == ["0:05", "✖", *words.split()]


def test_bars_sizes_and_clocks() -> None:
    assert (bar(1, 2, 4), bar(0, 2, 4), bar(9, 2, 4), bar(1, 0, 2)) == ("██  ", "    ", "████", "  ")
    assert (size(12), size(12_345), size(1_200_000), size(3e9)) == ("12 B", "12.3 KB", "1.2 MB", "3.0 GB")
    assert (clock(5), clock(65.9)) == ("0:05", "1:05")
