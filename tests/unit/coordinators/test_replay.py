"""Whatever is asked in whatever order, the log alone gives the same durable state. `Script` checks it at every step."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.unit.coordinators.classic.script import Script
from tests.unit.coordinators.durable import durable

WHO = st.sampled_from("abc")
JOINS = st.builds(
    "{} join {} {} {} {}".format,
    WHO,
    st.sampled_from(["", "", "id=none", "id=ghost"]),
    st.sampled_from(["", "v=3", "v=0", "v=8"]),
    st.sampled_from(["", "", "instance=1", "instance=2"]),
    st.sampled_from(
        [
            "",
            "",
            "topics=t,u",
            "protocols=range,sticky",
            "protocols=sticky,range",
            "protocols=range,range",
            "session=30000",
        ]
    ),
)
SYNCS = st.builds("{} sync {}".format, WHO, st.sampled_from(["", "v=4", "generation=1", "protocol=sticky"]))
OTHERS = st.builds(
    "{} {} {}".format, WHO, st.sampled_from(["beat", "commit", "leave"]), st.sampled_from(["", "id=none"])
)
COMMITS = st.builds("{} commit topic={} at={}".format, WHO, st.sampled_from("tu"), st.integers(0, 9))
WAITS = st.builds("wait {}".format, st.sampled_from([1, 500, 3_000, 6_000, 10_000, 60_000, 600_000]))
STEPS = st.lists(st.one_of(JOINS, JOINS, SYNCS, SYNCS, OTHERS, COMMITS, WAITS, WAITS, st.just("reload")), max_size=40)


@settings(max_examples=examples(150), deadline=None)
@given(STEPS)
def test_the_log_says_what_the_shard_holds(steps: list[str]) -> None:
    script = Script()
    for step in steps:
        script.do(step)


@settings(max_examples=examples(50), deadline=None)
@given(STEPS)
def test_a_compacted_log_says_the_same(steps: list[str]) -> None:
    script = Script()
    for step in steps:
        script.do(step)
    whole = durable(script.replayed().table)
    last = {repr(record.key): position for position, record in enumerate(script.log)}
    script.log = [script.log[position] for position in sorted(last.values())]
    assert durable(script.replayed().table) == whole


@settings(max_examples=examples(100), deadline=None)
@given(STEPS)
def test_timers_belong_to_somebody(steps: list[str]) -> None:
    script = Script()
    for step in steps:
        script.do(step)
    table = script.shard.table
    for kind, group_id, member_id in list(table.timers._due):
        group = table.groups[group_id]
        assert kind != "classic-session" or member_id in group.members or member_id in group.pending_joins  # type: ignore[attr-defined]  # classic
