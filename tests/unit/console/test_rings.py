from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.sampler.past import Measured, Past
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


def test_the_quietest_makes_room_and_what_was_never_lively_takes_none() -> None:
    past = Past(most=3)
    past.put(Measured("cluster", "", "in"), 0, 0.0)
    past.put(Measured("topic", "quiet", "in"), 0, 0.0)
    assert len(past) == 1, "nothing is kept of what is quiet, but for the cluster"
    past.put(Measured("topic", "old", "in"), 1_000, 5.0)
    past.put(Measured("topic", "young", "in"), 20_000, 5.0)
    past.put(Measured("topic", "new", "in"), 30_000, 5.0)
    assert len(past) == 3
    assert past.points(Measured("topic", "old", "in"), 30_000) == []
    assert past.points(Measured("topic", "young", "in"), 30_000, wanted=2) == [5.0, None]
    past.forget("topic", {"new"})
    assert past.points(Measured("topic", "young", "in"), 30_000) == []
    assert past.points(Measured("cluster", "", "in"), 30_000, wanted=1) == [None]
