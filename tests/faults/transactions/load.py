"""Workers and watchers as the load of a siege, and how it comes to its end: everything copied, everything at rest."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import TracebackType

from penstock.blocking import Admin
from penstock.client.errors import ClientError
from penstock.coordinators.transactions.transaction import STATUS_NAMES, Status
from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from tests.compat.cluster import Cluster
from tests.compat.processes import wait_for
from tests.faults.cluster.load import CATCH_UP_S, PROGRESS_S
from tests.faults.transactions.history import History
from tests.faults.transactions.watchers import Watcher
from tests.faults.transactions.workshop import Workshop

log = logging.getLogger(__name__)

AT_REST = frozenset(STATUS_NAMES[each] for each in (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT))
REST_S = 60.0


class TransactionLoad:
    """Runs from `with` until `finish`."""

    def __init__(
        self, cluster: Cluster, workshop: Workshop, partitions: int, watching: Sequence[type[Watcher]]
    ) -> None:
        self.cluster, self.workshop, self.partitions = cluster, workshop, range(partitions)
        self.topic = workshop.source
        self.watchers = [kind(cluster.bootstrap, workshop.topics, partitions) for kind in watching]
        self.history = History()
        self.history.copies = workshop.copies

    def __enter__(self) -> TransactionLoad:
        for library in ("kafka", "aiokafka", "penstock.client"):
            # They tell of every broken link, and links are broken here all the time.
            logging.getLogger(library).setLevel(logging.CRITICAL)
        self.workshop.__enter__()
        for watcher in self.watchers:
            watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # All are told first, so that nobody waits for the patience of somebody else.
        for watcher in self.watchers:
            watcher.stopping.set()
        for watcher in self.watchers:
            watcher.stop()
        self.workshop.__exit__(kind, error, at)

    # -- what a siege asks after every wave

    def wait_for_progress(self, count: int = 2) -> float:
        """Returns when every team has committed so many more transactions."""
        began = time.monotonic()
        goals = {name: done + count for name, done in self.workshop.done().items()}

        def gone_on() -> bool:
            self.workshop.check()
            return not self.workshop.lagging(goals)

        try:
            wait_for("commits", gone_on, timeout_s=PROGRESS_S, pause_s=0.1)
        except AssertionError as late:
            behind = self.workshop.lagging(goals)
            words = (
                f"not {count} commits within {PROGRESS_S:.0f} s: {behind}, {late}\n{self.workshop.last_words(behind)}"
            )
            raise AssertionError(f"{words}\n{self._state()}\n{self.cluster.last_words()}") from None
        return time.monotonic() - began

    def wait_for_readers(self, count: int = 1) -> None:
        """Returns when every watcher has been shown so much more of every topic."""
        goals = {(watcher, topic): seen + count for watcher in self.watchers for topic, seen in _seen(watcher).items()}

        def behind() -> list[str]:
            for watcher in self.watchers:
                assert not watcher.failures, watcher.failures
            return [f"{w.name} in {topic}" for (w, topic), goal in goals.items() if _seen(w)[topic] < goal]

        try:
            wait_for("watchers", lambda: not behind(), timeout_s=PROGRESS_S, pause_s=0.1)
        except AssertionError as late:
            words = f"nothing more within {PROGRESS_S:.0f} s for {', '.join(behind())}, {late}"
            raise AssertionError(f"{words}\n{self._state()}\n{self.cluster.last_words()}") from None

    def _state(self) -> str:
        try:
            with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
                return "\n".join([*map(str, self._unfinished(admin)), *map(str, self._uncopied(admin))])
        except (ClientError, TimeoutError) as silent:
            return f"nobody says how transactions stand: {silent}"

    # -- the end

    def finish(self) -> None:
        """Ends the feeding, waits until everything is copied, ends the copying, and waits until all is at rest."""
        self.workshop.finish(feeding=True)
        self._wait("everything to be copied", self._uncopied)
        self.workshop.finish(feeding=False)
        self._wait("rest", self._unfinished)
        self._wait("watchers", self._unseen)
        for watcher in self.watchers:
            watcher.stop()
        self.workshop.check()
        self.history.transcripts = self.workshop.transcripts
        self.history.readings = [item for watcher in self.watchers for item in watcher.readings.items()]
        with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
            self.history.offsets = self._group_offsets(admin)

    def _wait(self, what: str, unfinished: object) -> None:
        assert callable(unfinished)
        last: list[str] = []

        def done() -> bool:
            try:
                last[:] = unfinished(admin)
            except (ClientError, TimeoutError) as silent:
                last[:] = [str(silent)]
            return not last

        with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
            try:
                wait_for(what, done, timeout_s=max(CATCH_UP_S, REST_S), pause_s=0.1)
            except AssertionError as late:
                raise AssertionError(f"{late}: {last[:8]}\n{self.cluster.last_words()}") from None

    @property
    def places(self) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for topic in self.workshop.topics for partition in self.partitions]

    def _group_offsets(self, admin: Admin) -> dict[tuple[str, str, int], int]:
        return {
            (group, place.topic, place.partition): found.offset
            for group in self.workshop.groups
            for place, found in admin.group_offsets(group).items()
        }

    def _uncopied(self, admin: Admin) -> list[str]:
        """Groups that stand before a committed record of the source; of the ends alone, which is seen at once."""
        stand = self._group_offsets(admin)
        found = []
        for partition in self.partitions:
            place = self.topic, partition
            last = max((watcher.positions[place] for watcher in self.watchers), default=0)
            for group in self.workshop.groups:
                at = stand.get((group, *place), 0)
                if at < last:
                    found.append(
                        f"{group} stands at {at} of {self.topic}-{partition}, and there is something at {last - 1}"
                    )
        return found

    def _unfinished(self, admin: Admin) -> list[str]:
        """What is open: of transactional ids, in logs, and in the offsets of groups."""
        found = [f"{each.id} is in {each.state}" for each in admin.list_transactions() if each.state not in AT_REST]
        everywhere = self.places
        for topic in admin.topics(internal=True):
            if topic.name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
                everywhere += [TopicPartition(topic.name, each.partition) for each in topic.partitions]
        stable = admin.offsets(dict.fromkeys(everywhere, "latest"), read_committed=True).checked()
        ends = admin.offsets(dict.fromkeys(everywhere, "latest")).checked()
        found += [
            f"{place} is stable to {stable[place].offset} of {end.offset}"
            for place, end in ends.items()
            if stable[place].offset != end.offset
        ]
        for place, producers in admin.describe_producers(everywhere).checked().items():
            found += [
                f"{place} has one of {each.producer_id} open" for each in producers if each.transaction_start >= 0
            ]
        return found

    def _unseen(self, admin: Admin) -> list[str]:
        """Watchers that others are ahead of."""
        found = []
        for place in self.places:
            furthest = max(watcher.positions[place] for watcher in self.watchers)
            found += [
                f"{watcher.name} stands at {watcher.positions[place]} of {place}, others at {furthest}"
                for watcher in self.watchers
                if watcher.positions[place] < furthest
            ]
        return found


def _seen(watcher: Watcher) -> dict[str, int]:
    found: dict[str, int] = {}
    for (topic, _), position in watcher.positions.items():
        found[topic] = found.get(topic, 0) + position
    return found
