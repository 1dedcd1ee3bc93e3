from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.console.history.minutes import WHOLE_EVERY, MinutesIn, MinutesOut, NoMinute
from penstock.console.sampler.past import Measured

SERIES = [Measured(kind, name, number) for kind in ("topic", "组") for name in ("a", "ü" * 40) for number in ("in", "")]
MEANS = st.dictionaries(
    st.sampled_from(SERIES), st.integers(0, 1 << 62).map(float) | st.integers(0, 10_000).map(lambda n: n / 1_000)
)


@given(st.lists(MEANS, max_size=40), st.integers(0, 30))
def test_what_is_written_is_read_wherever_one_begins(minutes: list[dict[Measured, float]], first: int) -> None:
    out, read, wanted = MinutesOut(), MinutesIn(), dict[Measured, dict[int, float]]()
    whole = False
    for minute, means in enumerate(minutes):
        record = out.record(minute, means)
        if minute < first:
            continue
        read.take(record)
        whole = whole or record[1] == 0
        for of, mean in means.items() if whole else ():
            wanted.setdefault(of, {})[minute] = mean
    told = {of: minutes for of, minutes in read.told.items() if minutes}
    assert told.keys() == wanted.keys()
    for of, known in wanted.items():
        assert told[of].keys() == known.keys()
        assert all(abs(told[of][minute] - mean) <= 0.001 + 1e-12 * mean for minute, mean in known.items())


def test_a_reader_waits_ten_minutes_at_most_and_a_steady_minute_is_small() -> None:
    out, means = MinutesOut(), {Measured("topic", f"t{number}", "in"): 100.0 for number in range(2_000)}
    records = [out.record(minute, means) for minute in range(3 * WHOLE_EVERY)]
    assert [record[1] for record in records] == [0, *[1] * (WHOLE_EVERY - 1)] * 3
    assert all(len(record) < 2_020 for record in records if record[1] == 1)


@given(st.binary(max_size=60))
def test_what_somebody_else_wrote_is_refused(data: bytes) -> None:
    out = MinutesOut()
    record = out.record(7, {SERIES[0]: 1.0})
    for broken in (data, record[:2] + data, record[: len(record) // 2], record + data):
        read = MinutesIn()
        try:
            read.take(broken)
        except NoMinute:
            continue
        assert all(len(minutes) <= 1 for minutes in read.told.values())


def test_numbers_and_names_without_end_are_refused() -> None:
    for data in (b"\x01\x00" + b"\xff" * 50, b"\x02\x00", b"\x01\x00\x07\0\0\0\0" + b"\xff\xff\xff\x7f"):
        with pytest.raises(NoMinute):
            MinutesIn().take(data)
