"""Transactions of a world: clients, books and oracles together, as a simulation uses them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from penstock.testing.sim.transactions.books import Books
from penstock.testing.sim.transactions.clients import Crowd
from penstock.testing.sim.transactions.ledger import Ledger
from penstock.testing.sim.transactions.moments import Moments
from penstock.testing.sim.transactions.oracles import Oracles
from penstock.testing.sim.transactions.whims import Whims

if TYPE_CHECKING:
    from penstock.testing.sim.history import History
    from penstock.testing.sim.invariants import Invariants
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.transactions.plan import TransactionPlan
    from penstock.testing.sim.trouble import Trouble
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
        self._world, self._plan, self._drawn = world, plan, drawn
        self._moments: Moments | None = None
        sender = history.sender(SENDER, promised=False, once=False, may_fail=True)
        self.ledger = Ledger(sender.next_value)
        self.books = Books(world.story.clock, world.story.violated, producers_expire=plan.producers_expire)
        self.crowd = Crowd(world, plan, drawn, workload, self.ledger)
        self.crowd.misread, self.crowd.is_current = self.books.misread, self.books.is_current
        self.oracles = Oracles(world, plan, history.truth, self.books, self.crowd)
        invariants.on_batch = self.books.learn
        invariants.on_opened = self.oracles.opened

    def start(self, trouble: Trouble) -> None:
        """Everybody begins, and is in trouble from now on."""
        self.crowd.start()
        world, drawn = self._world, self._drawn
        self._moments = Moments(world, self._plan, drawn, trouble, self.crowd)
        self._moments.start()
        self.books.on_state = self._moments.told
        if drawn.late_rate:
            random = Random(f"whims {world.seed}")
            late_markers = not drawn.classic_rate
            whims = Whims(drawn.late_rate, late_markers=late_markers, story=world.story, random=random)
            whims.on_late_marker = self._moments.replace
            world.network.whim = whims

    def calm(self) -> None:
        """Nobody is struck any more; what is late already comes in its time."""
        if self._moments is not None:
            self._moments.stop()
        self._world.network.whim = None

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
