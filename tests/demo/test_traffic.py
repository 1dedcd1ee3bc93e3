"""The lines of the log are what they claim to be, and a day of them has the shape of a day."""

from __future__ import annotations

import random
import re
from pathlib import Path

from penstock.certificates.client_files import ClientFiles
from penstock.demo.files import agent_file, pipeline_file
from penstock.demo.traffic import DAY_S, PATTERN, Traffic, busyness, lines_until, log_time, number_of
from penstock.model.secret import Secret

LINES = 3_000


def made(broken_share: float) -> list[tuple[bytes, bool]]:
    traffic = Traffic(random.Random(1), broken_share=broken_share)
    return [traffic.line(number, log_time(number, LINES), 1_793_000_000_000) for number in range(LINES)]


def fits(line: bytes) -> bool:
    try:
        return re.match(PATTERN, line.decode()) is not None
    except UnicodeDecodeError:
        return False


def test_the_pattern_fits_every_line_that_is_not_broken_and_none_that_is() -> None:
    lines = made(0.2)
    assert {broken for _, broken in lines} == {True, False}
    assert [(line, fits(line)) for line, broken in lines if fits(line) is broken] == []


def test_a_line_is_known_by_its_number_broken_or_not() -> None:
    assert [number_of(line) for line, _ in made(0.5)] == list(range(LINES))
    assert [number_of(line) for line in (b"", b"x", b"a b c")] == [-1, -1, -1]


def test_the_same_seed_gives_the_same_lines() -> None:
    assert made(0.1) == made(0.1)


def test_lines_follow_the_curve_of_the_day_and_never_go_back() -> None:
    counts = [lines_until(second, 60, 4_000) for second in range(121)]
    assert counts == sorted(counts)
    assert (counts[60], counts[120]) == (240_000, 480_000)
    by_hour = [lines_until((hour + 1) / 24, 1, 24_000) - lines_until(hour / 24, 1, 24_000) for hour in range(24)]
    assert all(abs(count - 1_000 * busyness((hour + 0.5) / 24)) < 25 for hour, count in enumerate(by_hour))
    assert by_hour.index(min(by_hour)) in (3, 4)


def test_a_day_of_the_log_takes_as_long_as_was_asked_for() -> None:
    assert (log_time(10, 20) - log_time(0, 20)).total_seconds() == DAY_S / 2
    for elapsed_s in (20, 31):
        assert (log_time(elapsed_s, 20) - log_time(0, 20)).total_seconds() == DAY_S - 1, (
            "one day, however long it takes"
        )


def test_the_files_that_are_run_are_valid(tmp_path: Path) -> None:
    from penstock.agent.settings import examine as examine_agent
    from penstock.spark.pipeline.reading import examine as examine_pipeline

    ClientFiles(tmp_path, "one").write(["localhost:9092"], Secret("hidden"))
    (tmp_path / "ca.pem").touch()
    login = str(ClientFiles(tmp_path, "one").java)
    pipeline = examine_pipeline(pipeline_file("localhost:9092", login), Path("/demo/pipeline.toml"))
    assert (pipeline.mistakes, pipeline.warnings) == ((), ())
    agent = examine_agent(agent_file("localhost:9092", login), Path("/demo/agent.toml"))
    assert (list(agent.mistakes), list(agent.warnings)) == ([], [])
