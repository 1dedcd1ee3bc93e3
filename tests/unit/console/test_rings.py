from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.sampler.past import LIVELIER_TIMES, REVIEW_MS, SETTLED_MS, SWAPS_MAX, Measured, Past
from penstock.console.sampler.rings import Ring


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1e12)), max_size=60), st.integers(1, 20))
def test_a_ring_has_the_mean_of_each_slot_and_nothing_where_nothing_was_told(
    told: list[tuple[int, float]], slots: int
) -> None:
    ring, known, last = Ring(10, slots), dict[int, list[float]](), -1
    for at, value in told:
        ring.put(at, value)
        slot = at // 10
        if slot >= last:
            known.setdefault(slot, []).append(value)
            last = slot
    now = max(last, 0)
    points = ring.points(now * 10, slots)
    wanted = [known.get(slot) for slot in range(now - slots + 1, now + 1)]
    assert len(points) == slots
    for point, values in zip(points, wanted, strict=True):
        if values is None:
            assert point is None
        else:
            assert point is not None
            assert abs(point - sum(values) / len(values)) <= 1e-6 * max(values) + 1e-9


def topics(**rates: float) -> dict[str, dict[str, float]]:
    return {name: {"in": rate} for name, rate in rates.items()}


def told(past: Past, at_ms: int, **rates: float) -> None:
    past.put("topic", at_ms, topics(**rates), rates)


def kept(past: Past, at_ms: int, *names: str) -> list[str]:
    return [name for name in names if past.points(Measured("topic", name, "in"), at_ms)]


def test_what_was_never_lively_takes_no_place_and_what_is_gone_leaves_its() -> None:
    past = Past({"cluster": 1, "topic": 3})
    past.put("cluster", 0, {"": {"in": 0.0}})
    told(past, 0, quiet=0.0)
    assert len(past) == 1, "nothing is kept of what is quiet, but for the cluster"
    told(past, 10_000, quiet=0.0, young=5.0)
    assert past.points(Measured("topic", "young", "in"), 20_000, wanted=2) == [5.0, None]
    past.forget("topic", {"quiet"})
    assert past.points(Measured("topic", "young", "in"), 20_000) == []
    assert past.points(Measured("cluster", "", "in"), 5_000, wanted=1) == [0.0]


def test_places_go_to_the_liveliest_and_change_hands_slowly() -> None:
    past = Past({"topic": 2})
    told(past, 0, a=1.0, b=2.0, c=3.0)
    assert kept(past, 0, "a", "b", "c") == ["b", "c"]
    # Twice as lively is not enough, and whoever has just come stays.
    told(past, REVIEW_MS, a=LIVELIER_TIMES * 2.0, b=2.0, c=3.0)
    told(past, 2 * REVIEW_MS, a=100.0, b=2.0, c=3.0)
    assert kept(past, 0, "a", "b", "c") == ["b", "c"]
    told(past, SETTLED_MS, a=LIVELIER_TIMES * 2.0, b=2.0, c=3.0)
    assert kept(past, SETTLED_MS, "a", "b", "c") == ["b", "c"]
    told(past, SETTLED_MS + REVIEW_MS, a=100.0, b=2.0, c=3.0)
    assert kept(past, SETTLED_MS + REVIEW_MS, "a", "b", "c") == ["a", "c"]


def test_thousands_that_are_all_alike_do_not_turn_each_other_out() -> None:
    """They once did: every look made a place for each of two thousand groups, so that no chart had two points."""
    past, names = Past({"topic": 20}), [f"t{number}" for number in range(2_000)]
    before: list[str] = []
    for look in range(200):
        # They take turns in being the liveliest.
        rates = {name: 1.0 + (number + 7 * look) % 10 for number, name in enumerate(names)}
        told(past, look * 10_000, **rates)
        now = kept(past, look * 10_000, *names)
        assert len(now) == 20
        assert len(set(before) - set(now)) <= SWAPS_MAX
        before = now
    assert all(None not in past.points(Measured("topic", name, "in"), 1_990_000, wanted=50) for name in before)


def test_one_kind_takes_no_place_from_another() -> None:
    past = Past({"topic": 2, "group": 2})
    told(past, 0, a=1.0, b=1.0)
    groups = {f"g{number}": {"lag": 1_000.0, "consumed": 50.0} for number in range(100)}
    past.put("group", 0, groups, dict.fromkeys(groups, 50.0))
    assert kept(past, 0, "a", "b") == ["a", "b"]
    assert len(past) == 2 + 2 * 2


def test_minutes_that_were_written_down_come_back_and_what_was_seen_stays() -> None:
    past, hour_ms = Past({"topic": 2}), 3_600_000
    told(past, hour_ms, a=8.0)
    past.restore(
        {
            Measured("topic", "a", "in"): {58: 2.0, 59: 4.0, 60: 100.0},
            Measured("topic", "b", "in"): {40: 1.0},
            Measured("topic", "c", "in"): {40: 1.0},
            Measured("nothing", "c", "in"): {40: 1.0},
        }
    )
    assert past.points(Measured("topic", "a", "in"), hour_ms, 60, 4) == [None, 2.0, 4.0, 8.0]
    assert past.points(Measured("topic", "a", "in"), hour_ms, 600, 2) == [3.0, 8.0]
    assert past.points(Measured("topic", "b", "in"), hour_ms, 60, 21)[0] == 1.0
    assert kept(past, hour_ms, "a", "b", "c") == ["a", "b"]
    assert past.minute(hour_ms) == {Measured("topic", "a", "in"): 8.0}
