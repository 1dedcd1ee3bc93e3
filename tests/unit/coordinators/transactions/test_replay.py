"""Whatever is asked in whatever order, the log alone, compacted or not, gives the same state."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.coordinators.transactions.shard import TransactionShard
from tests.properties import examples
from tests.unit.coordinators.transactions.scene import Scene

NAMES = st.sampled_from(["a", "b"])
PARTITIONS = st.lists(st.tuples(st.sampled_from("tu"), st.integers(0, 2)), min_size=1, max_size=3)
# Who asks: as the producer is now, as it was an epoch ago, or with numbers of nobody.
WHO = st.sampled_from(["now", "now", "now", "before", "nobody"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("init"), NAMES, st.sampled_from(["", "now", "before", "nobody"])),
        st.tuples(st.just("add"), NAMES, WHO, PARTITIONS, st.sampled_from([0, 2])),
        st.tuples(st.just("offsets"), NAMES, WHO),
        st.tuples(st.just("end"), NAMES, WHO, st.booleans(), st.sampled_from([4, 5])),
        st.tuples(st.just("mark")),
        st.tuples(st.just("mark")),
        st.tuples(st.just("wait"), st.sampled_from([1, 10_000, 80_000, 700_000_000])),
        st.tuples(st.just("hold")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("fail over"), st.booleans(), st.booleans()),
        st.tuples(st.just("version"), st.sampled_from([0, 1, 2])),
        st.tuples(st.just("age"), NAMES),
    ),
    max_size=40,
)


class Player:
    """Plays steps on a scene and looks after each whether the log says what the shard holds."""

    def __init__(self) -> None:
        self.scene = Scene()

    def play(self, step: tuple[Any, ...]) -> None:
        scene = self.scene
        match step:
            case ("init", name, who):
                scene.init(*(self._who(name, who) if who else (-1, -1)), name=name)
            case ("add", name, who, partitions, version):
                scene.add(*self._who(name, who), *partitions, name=name, version=version)
            case ("offsets", name, who):
                scene.add_offsets(*self._who(name, who), name=name)
            case ("end", name, who, commit, version):
                scene.end(*self._who(name, who), commit=commit, version=version, name=name)
            case ("mark",):
                scene.mark_all()
            case ("wait", ms):
                scene.wait(ms)
            case ("hold",):
                scene.held = True
            case ("commit",):
                scene.commit()
            case ("fail over", lose, compacted):
                scene.effects.clear()
                scene.fail_over(lose=lose, compacted=compacted)
            case ("version", level):
                scene.raise_version(level)
            case ("age", name):
                self._age(name)
        self.check()

    def _who(self, name: str, who: str) -> tuple[int, int]:
        transaction = self.scene.shard.table.transactions.get(name)
        if transaction is None or who == "nobody":
            return (7, 7)
        state = transaction.state
        if who == "now":
            return (state.producer_id, state.epoch)
        if state.epoch == 0:
            return (state.previous_producer_id, 32_766)
        return (state.producer_id, state.epoch - 1)

    def _age(self, name: str) -> None:
        """Nearly all epochs of an id that is at rest are used up, as if it had been busy for years."""
        transaction = self.scene.shard.table.transactions.get(name)
        if transaction is None or transaction.state.epoch > 32_700:
            return
        older_by = 32_765 - transaction.state.epoch
        for record in self.scene.log:
            value: Any = record.value
            if value is not None and value.producer_id == transaction.state.producer_id:
                value.producer_epoch += older_by
        self.scene.effects.clear()
        self.scene.fail_over()

    def check(self) -> None:
        live = held(self.scene.shard)
        assert held(self.scene.replayed()) == live
        assert held(self.scene.replayed(compacted=True)) == live
        assert all(state.epoch <= 32_767 for _, state, _ in live)


def held(shard: TransactionShard) -> list[Any]:
    """What is durable, and what is made of it alone: who is busy."""
    table = shard.table
    return [
        (name, transaction.state, (name in table.deadlines, name in table.prepared))
        for name, transaction in sorted(table.transactions.items())
    ]


@settings(max_examples=examples(200), deadline=None)
@given(STEPS)
def test_the_log_says_what_the_shard_holds(steps: list[tuple[Any, ...]]) -> None:
    player = Player()
    for step in steps:
        player.play(step)
