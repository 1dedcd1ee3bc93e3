"""Names that rotation gives, and numbers that are missing among them."""

from __future__ import annotations

import pytest

from penstock.agent.inputs.tail.rotations import Rotation, is_rotation, missing_numbers, rotations_of


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("access.log.1", 1),
        ("access.log.0", 0),
        ("access.log.12.gz", 12),
        ("access.log-20261117", None),
        ("access.log-20261117.zst", None),
        ("access.log.2026-11-17", None),
        ("access.log.2026-11-17.3", None),
        ("access.log.20261117-101010.gz", None),
        ("access.log_20261117T10:10:10", None),
        ("access-20261117.log", None),
        ("access.2026-11-17.log.gz", None),
        ("access-2026-11-17-3.log", None),
        ("access_202611.log", None),
        ("access.log.old", None),
        ("access.log.gz", None),
    ],
)
def test_a_name_that_rotation_gives(name: str, number: int | None) -> None:
    assert Rotation("access.log", number) in rotations_of(name)


@pytest.mark.parametrize(
    "name",
    [
        "access.log",
        "access-1.log",
        "access2.log",
        "access-error.log",
        "access.log.tmp",
        "access.log.bak",
        "access.log.1.swp",
        "other.log.1",
        "access-1234567.log",
        ".1",
        "20261117",
    ],
)
def test_other_names(name: str) -> None:
    assert not is_rotation(name, "access.log")


def test_the_longest_name_comes_first() -> None:
    assert [each.base for each in rotations_of("app.log.1.2.gz")] == ["app.log.1.2", "app.log.1", "app.log"]


def test_forms_of_compression_that_nobody_can_read_are_known_by_name() -> None:
    found = {name: rotations_of(f"a.log.1{name}")[-1].readable for name in ("", ".gz", ".zst", ".bz2", ".xz", ".Z")}
    assert found == {"": True, ".gz": True, ".zst": True, ".bz2": False, ".xz": False, ".Z": False}


def test_numbers_that_must_have_been_given_are_missed() -> None:
    assert missing_numbers(4, {4: 10, 3: 20, 1: 40}) == [2]
    assert missing_numbers(3, {3: 10, 5: 5}) == [1, 2]
    assert missing_numbers(2, {2: 10, 1: 20, 0: 30}) == []
    assert missing_numbers(2, {2: 10, 0: 30}) == [1]


def test_numbers_that_rise_with_time_say_nothing_of_those_before() -> None:
    assert missing_numbers(7, {7: 10, 8: 20, 9: 30}) == []
    assert missing_numbers(7, {7: 10}) == []
