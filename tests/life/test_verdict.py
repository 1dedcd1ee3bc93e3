"""The judge of a life, and the ledger that it believes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.cluster.history import Outcome, Read, Send
from tests.life import page
from tests.life.ledger import Ledger
from tests.life.verdict import GROWTH_MAX, grown_types, growth, growths


def points(*of_each_second: float) -> list[tuple[float, float]]:
    return [(float(at), value) for at, value in enumerate(of_each_second)]


def test_a_constant_has_not_grown() -> None:
    found = growth("rss", points(*[40.0] * 100), 100)
    assert (found.quarter, found.end, found.grown, found.noise, found.held) == (40, 40, 0, 0, True)


def test_a_leak_of_a_tenth_is_found() -> None:
    found = growth("rss", points(*(100 + at / 10 for at in range(100))), 100)
    assert found.grown == pytest.approx(0.06, abs=0.01)
    assert not found.held


def test_what_grows_in_the_first_quarter_only_is_no_leak() -> None:
    assert growth("rss", points(*(min(at, 25) + 10 for at in range(100))), 100).held


def test_a_minority_of_wild_samples_changes_nothing() -> None:
    wild = [40.0 if at % 5 else 400.0 for at in range(200)]
    assert growth("rss", points(*wild), 200).grown == 0


def test_less_than_before_is_no_growth() -> None:
    found = growth("rss", points(*(200.0 - at for at in range(100))), 100)
    assert found.grown < 0
    assert found.held


def test_noise_is_how_far_neighbours_lie_apart() -> None:
    waves = [100.0 if at // 10 % 2 else 110.0 for at in range(100)]
    assert growth("rss", points(*waves), 100).noise == pytest.approx(0.1, abs=0.011)


def test_a_series_of_nothing_that_becomes_something_has_grown() -> None:
    assert growth("errors", points(*[0.0] * 60, *[3.0] * 40), 100).grown > GROWTH_MAX


def test_types_are_named_by_how_many_more_there_are() -> None:
    assert grown_types({"a": 5, "b": 5}, {"a": 6, "b": 50, "c": 2}) == ["b 5 → 50", "c 0 → 2", "a 5 → 6"]


def test_the_page_says_what_grew_and_what_was_wrong(tmp_path: Path) -> None:
    flat, grown = points(*[40.0] * 100), points(*(100.0 + at for at in range(100)))
    series = {"memory of node 1, MB": grown, "produce latency p50, ms": flat, "files of the lake": grown}
    told = [growth("files of the lake", grown, 100)]
    judged = growths({name: series[name] for name in list(series)[:2]}, 100)
    found = page.Found(60, series, judged, told, {"kill -9": 1_234}, ["a record was lost\nand more"])
    page.write(found, tmp_path)
    text = (tmp_path / "life.md").read_text()
    assert "which makes 417 days" in text
    assert "| memory of node 1, MB | 129.5 | 194.5 | +50.2% |" in text
    assert "**no**" in text.split("memory of node 1")[1].splitlines()[0]
    assert "**no**" not in text.split("latency p50")[1].splitlines()[0]
    assert "files of the lake: 130, then 194" in text
    assert "| kill -9 | 1,234 |" in text
    assert "- `a record was lost`" in text
    pictures = re.findall(r"\]\((\S+\.svg)\)", text)
    assert sorted(pictures) == sorted(path.name for path in tmp_path.glob("*.svg"))


def sent(ledger: Ledger, *numbers: int, outcome: Outcome = Outcome.ACKED) -> None:
    for number in numbers:
        ledger.sends.append(Send("w", 0, number, outcome, number))


def read(ledger: Ledger, *values: tuple[int, int], consumer: str = "r") -> None:
    for offset, number in values:
        ledger.reads.append(Read(consumer, 0, 0, offset, f"w:{number}"))


def test_a_ledger_that_is_read_in_order_is_right() -> None:
    ledger = Ledger()
    sent(ledger, 0, 1, 2)
    read(ledger, (0, 0), (1, 1), (1, 1), (2, 2))
    assert ledger.caught_up(["r"])
    assert ledger.verdict(["r"]) == []


def test_an_acknowledged_value_that_is_passed_over_is_lost() -> None:
    ledger = Ledger()
    sent(ledger, 0, 1, 2)
    read(ledger, (0, 0), (1, 2))
    assert ledger.verdict(["r"]) == ["r never got 1 values of w, such as [1] in partition 0"]


def test_an_unanswered_value_may_be_there_or_not() -> None:
    ledger = Ledger()
    sent(ledger, 0, 2)
    sent(ledger, 1, outcome=Outcome.UNKNOWN)
    read(ledger, (0, 0), (1, 2))
    assert ledger.verdict(["r"]) == []


def test_a_value_at_two_offsets_was_written_twice() -> None:
    ledger = Ledger()
    sent(ledger, 0, 1)
    read(ledger, (0, 0), (1, 1), (2, 1))
    assert ledger.verdict(["r"]) == ["r got w:1 of partition 0 again, at offset 2"]


def test_a_value_that_comes_behind_a_later_one_is_out_of_order() -> None:
    ledger = Ledger()
    sent(ledger, 0, 1, 2)
    read(ledger, (0, 0), (1, 2), (2, 1))
    assert ledger.verdict(["r"]) == ["r got w:1 of partition 0 late, at offset 2"]


def test_two_readers_that_see_different_values_at_one_offset_are_told() -> None:
    ledger = Ledger()
    sent(ledger, 0, 1)
    read(ledger, (0, 0), (1, 1))
    read(ledger, (0, 1), consumer="s")
    assert "offset 0 of partition 0 has w:0 and w:1" in ledger.verdict([])


def test_what_is_not_read_in_the_end_is_lost() -> None:
    ledger = Ledger()
    sent(ledger, 0, 1)
    read(ledger, (0, 0))
    assert not ledger.caught_up(["r"])
    assert ledger.verdict(["r"]) == ["r never got w:1 in partition 0"]
