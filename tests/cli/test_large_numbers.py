"""The command line on topics after years: offsets, lags, times and tables of any width."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from penstock.testing import broker
from penstock.testing.ancient import Age, OldTopic, Past
from tests.cli.command import penstock

START = (1 << 53) - 2
LAST = (1 << 63) - 1
TIMES_MS = [0, 9_223_372_036_855, 253_402_300_799_999, 253_402_300_800_000, (1 << 53) + 1, LAST]


@pytest.fixture(scope="module")
def old() -> Iterator[str]:
    configs = {"message.timestamp.after.max.ms": str(LAST), "retention.ms": "-1"}
    with broker(past=Past(Age(START), [OldTopic("orders", [[1]], configs), OldTopic("trimmed", [[1]])])) as running:
        rows = "".join(json.dumps({"timestamp": each, "value": str(each)}) + "\n" for each in TIMES_MS)
        sent = penstock("produce", "orders", "-f", "json", "-b", running.bootstrap_servers, stdin=rows)
        assert (sent.code, sent.err) == (0, "sent 6 records\n")
        yield running.bootstrap_servers


def offsets(*arguments: str) -> list[int]:
    said = penstock("consume", "orders", "-e", *arguments)
    assert said.code == 0, said.err
    return [json.loads(line)["offset"] for line in said.out.splitlines()]


def test_records_come_out_as_they_went_in(old: str) -> None:
    said = penstock("consume", "orders", "-e", "-b", old)
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [(row["offset"], row["timestamp"]) for row in rows] == list(enumerate(TIMES_MS, START))
    again = penstock("produce", "orders", "-f", "json", "-b", old, stdin=said.out.splitlines()[-1])
    assert again.code == 0
    years = penstock("consume", "orders", "-n", "6", "-f", "%o %d{strftime[%Y]}\\n", "-b", old)
    assert [line.split()[1] for line in years.out.splitlines()] == [
        "1970", "2262", "9999", "253402300800000", str((1 << 53) + 1), str(LAST),
    ]  # fmt: skip


def test_places_beyond_53_bits_are_found(old: str) -> None:
    assert offsets("-o", str(START + 3), "-n", "2", "-b", old) == [START + 3, START + 4]
    assert offsets("-o", f"{START + 1}:{START + 4}", "-b", old) == [START + 1, START + 2, START + 3]
    assert offsets("-o", "+2", "-n", "1", "-b", old) == [START + 2]
    assert offsets("-o", "@2262-01-01", "-n", "1", "-b", old) == [START + 1]
    assert offsets("-o", "@9999-12-31T23:59:59Z", "-n", "1", "-b", old) == [START + 2]


@pytest.mark.parametrize("moment", ["@1969-12-31T23:59:59.999Z", "@1901-01-01", "@-9000000h"])
def test_a_time_before_all_times_is_the_start(old: str, moment: str) -> None:
    """Below 0 there are numbers that mean the end, the start and other places to a broker."""
    assert offsets("-o", moment, "-n", "1", "-b", old) == [START]


def test_lags_are_exact_and_positions_move_where_they_shall(old: str) -> None:
    def seek(*arguments: str) -> int:
        return penstock("group", "seek", "slow", *arguments, "-y", "-b", old).code

    assert seek("--to", str(START + 1), "--topic", "orders") == 0
    lag = penstock("group", "lag", "slow", "--format", "json", "-b", old).data
    [row] = [row for group in lag for row in group.get("partitions", [group])]
    described = penstock("topic", "describe", "orders", "--format", "json", "-b", old).data
    end = json.dumps(described)
    assert str(START) in end
    assert row["lag"] == row["end"] - (START + 1)
    table = penstock("group", "describe", "slow", "-b", old).out
    assert str(START + 1) in table


def test_a_trim_to_more_than_there_is_is_refused(old: str) -> None:
    said = penstock("topic", "trim", "trimmed", "--before", str(LAST), "-y", "-b", old)
    assert said.code == 1, said
    assert "OFFSET_OUT_OF_RANGE" in said.err
