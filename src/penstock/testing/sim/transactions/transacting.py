"""Transactions of a world: clients, books and oracles together, as a simulation uses them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from penstock.testing.sim.transactions.books import Books
from penstock.testing.sim.transactions.clients import Crowd
from penstock.testing.sim.transactions.ledger import Ledger
from penstock.testing.sim.transactions.oracles import Oracles

if TYPE_CHECKING:
    from penstock.testing.sim.history import History
    from penstock.testing.sim.invariants import Invariants
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.transactions.plan import TransactionPlan
    from penstock.testing.sim.workload import Workload
    from penstock.testing.sim.world import World

SENDER = "t"
"""By this name the history knows all records that were written in transactions."""


class Transacting:
    """From `start` until the world is judged."""

    def __init__(
        self,
        world: World,
        plan: Plan,
        drawn: TransactionPlan,
        history: History,
        invariants: Invariants,
        workload: Workload,
    ) -> None:
        self._world = world
        sender = history.sender(SENDER, promised=False, once=False, may_fail=True)
        self.ledger = Ledger(sender.next_value)
        self.books = Books(world.story.clock, world.story.violated)
        self.crowd = Crowd(world, plan, drawn, workload, self.ledger)
        self.oracles = Oracles(world, history.truth, self.books, self.crowd)
        invariants.on_batch = self.books.learn

    def start(self) -> None:
        self.crowd.start()

    def after_instant(self, touched: list[SimLoop]) -> None:
        self.books.after_instant()
        self.oracles.after_instant(touched)

    def unfinished(self) -> list[str]:
        return self.crowd.unfinished()

    def disorders(self) -> list[str]:
        return self.oracles.disorders()

    def judge(self) -> list[str]:
        """What was promised and is not so."""
        story = self._world.story
        for book in self.books.books.values():
            story.count("transactions ended in a partition", len(book.ended))
        return self.oracles.judge(Random(f"judge {self._world.seed}"))
