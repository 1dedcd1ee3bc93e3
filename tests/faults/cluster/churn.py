"""Topics that come, are written, go, and come again under their names, beside whatever happens to the cluster.

One thread owns the names, so it knows what exists whenever a controller has answered: an answer that got lost is asked
for again, and `exists already` or `unknown` then says that the first request was carried out. Values tell of which
incarnation they are; nothing acknowledged to this one may be missing, and nothing of an earlier one may be there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.faults.node import read_all
from tests.patience import within

log = logging.getLogger(__name__)

NAMES = ("anew-0", "anew-1", "anew-2")
RECORDS = 20
CONFIGS = {"segment.ms": "1000", "retention.ms": "-1"}


def _quiet() -> dict[str, int]:
    return {"log_level": 0, "reconnect.backoff.max.ms": 500, "socket.timeout.ms": within(5_000)}


@dataclass
class _Topic:
    """One name: which incarnation of it exists, and what was acknowledged to that."""

    incarnation: int = 0
    exists: bool = False
    acknowledged: list[str] = field(default_factory=list)


class Churn:
    """Runs between `with` and its end; `check` looks at what there is, when the cluster is whole."""

    def __init__(self, bootstrap: str, replicas: int = 3) -> None:
        self._bootstrap, self._replicas = bootstrap, replicas
        self._topics = {name: _Topic() for name in NAMES}
        self._stopping = threading.Event()
        # Whoever checks has the topics to itself.
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="churn")
        self.made = self.deleted = 0
        self.failures: list[str] = []

    def __enter__(self) -> Churn:
        self._admin = AdminClient({"bootstrap.servers": self._bootstrap, **_quiet()})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                for name, topic in self._topics.items():
                    with self._turn:
                        self._go_on(name, topic)
                    if self._stopping.wait(0.3):
                        return
        except Exception as failure:
            log.exception("churn has ended")
            self.failures.append(repr(failure))

    def _go_on(self, name: str, topic: _Topic) -> None:
        """The next step in the life of a name; a step that was not answered is taken again next time."""
        if not topic.exists:
            if not self._asked(self._create, name, KafkaError.TOPIC_ALREADY_EXISTS):
                return
            topic.incarnation += 1
            topic.exists, topic.acknowledged = True, []
            self.made += 1
            self._write(name, topic)
        elif self._asked(self._delete, name, KafkaError.UNKNOWN_TOPIC_OR_PART):
            topic.exists = False
            self.deleted += 1

    def _create(self, name: str) -> None:
        made = NewTopic(name, 1, self._replicas, config=CONFIGS)
        self._admin.create_topics([made], operation_timeout=within(5), request_timeout=within(8))[name].result(
            within(10)
        )

    def _delete(self, name: str) -> None:
        self._admin.delete_topics([name], operation_timeout=within(5), request_timeout=within(8))[name].result(
            within(10)
        )

    @staticmethod
    def _asked(request: Callable[[str], None], name: str, done_before: int) -> bool:
        """Whether it is done, now or by an earlier request whose answer got lost."""
        try:
            request(name)
        except KafkaException as refused:
            return bool(refused.args[0].code() == done_before)
        except TimeoutError:
            return False
        return True

    def _write(self, name: str, topic: _Topic) -> None:
        producer = Producer({
            "bootstrap.servers": self._bootstrap, "enable.idempotence": True, "message.timeout.ms": within(20_000),
            "retry.backoff.ms": 50, "topic.metadata.refresh.fast.interval.ms": 100, **_quiet(),
        })  # fmt: skip

        def noted(value: str) -> Callable[[object, object], None]:
            return lambda error, _: None if error else topic.acknowledged.append(value)

        for number in range(RECORDS):
            value = f"{name}:{topic.incarnation}:{number}"
            producer.produce(name, value.encode(), partition=0, on_delivery=noted(value))
        producer.flush(within(25))

    def check(self) -> None:
        """Of a whole cluster: what exists holds what was acknowledged to it, in order, and nothing older."""
        assert not self.failures, self.failures
        with self._turn:
            for name, topic in self._topics.items():
                if topic.exists:
                    self._check(name, topic)

    def _check(self, name: str, topic: _Topic) -> None:
        found = [value.decode() for value in read_all(self._bootstrap, name, [0]).values()]
        older = [value for value in found if not value.startswith(f"{name}:{topic.incarnation}:")]
        assert not older, f"incarnation {topic.incarnation} of {name} shows {older[:5]}"
        assert len(set(found)) == len(found), f"{name} has a record twice: {found}"
        lost = [value for value in topic.acknowledged if value not in found]
        assert not lost, f"incarnation {topic.incarnation} of {name} has lost {lost[:5]} of {len(topic.acknowledged)}"
        order = [int(value.rpartition(":")[2]) for value in found]
        assert order == sorted(order), f"{name} is out of order: {found}"
