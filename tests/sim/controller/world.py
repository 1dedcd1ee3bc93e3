"""Brokers, a controller and an administrator under a seed. Which replica really has every committed record is known
here, so that an election can be judged by what it loses.

A broker is only what the controller hears of it: it registers, applies metadata, reports, leads, follows. Requests wait
in `mail` and arrive late, twice or out of order; a broker that is killed may have lost what it had not synced.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from penstock.metadata.entities import CONFIG_BROKER, CONFIG_TOPIC, RECOVERING, PartitionImage
from penstock.metadata.image import ClusterImage
from penstock.protocol.messages.alter_partition import AlterPartitionRequest
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.sim.controller.checks import check_index, check_partition, check_step
from tests.sim.controller.log import SESSION_MS, MetadataLog
from tests.unit.controller.desk import creation, registration, topic, uuid_of

Key = tuple[bytes, int]
NOTHING = -1


def ignore(_reply: Any) -> None:
    """Nobody waits for it."""


class Broker:
    """One broker id and the process that runs as it, if one does."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.running = self.paused = False
        self.life = 0
        self.epoch = NOTHING
        self.clean_epoch = NOTHING
        self.dirty = False
        """Whether it was killed and has not told the controller yet: what it had may be gone."""
        self.applied = NOTHING
        self.stopping = False

    @property
    def acting(self) -> bool:
        return self.running and not self.paused and self.epoch != NOTHING


class World:
    """Everything, and the story of what happened."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.elr = rng.random() < 0.8
        self.log = MetadataLog(rng, rng.choice([1, 2]), self.elr, through_bytes=seed % 16 == 0)
        self.now = 0.0
        self.brokers = {number: Broker(number) for number in range(1, rng.choice([3, 3, 4, 5]) + 1)}
        self.mail: list[tuple[str, Any, Callable[[Any], None]]] = []
        self.whole: dict[Key, set[int]] = {}
        """Who really has every committed record, by partition."""
        self.given_up: dict[Key, int] = {}
        """The leader epoch of a partition's last election that could lose records."""
        self.unsettled: dict[tuple[Key, int], int] = {}
        """By partition and its leader: the partition epoch at which it asked for another ISR and knows no answer."""
        self.history: dict[Key, list[tuple[int, PartitionImage]]] = {}
        self.seen: dict[Key, PartitionImage] = {}
        self.story: list[str] = []
        self.names = 0
        self.checked = (0, 0)
        self.minimums = [(NOTHING, self.log.settings.min_insync_replicas)]
        weights = {name: weight * rng.choice([0.3, 1.0, 1.0, 3.0]) for name, weight in ACTIONS.items()}
        self.actions, self.weights = list(weights), list(weights.values())

    @property
    def image(self) -> ClusterImage:
        return self.log.controller.image

    # Time

    def begin(self) -> None:
        """A cluster that is up, with two topics."""
        for broker in self.brokers.values():
            self.start(broker)
        self.deliver_all()
        for broker in self.brokers.values():
            broker.applied = self.log.published.offset
            self.beat(broker)
        self.deliver_all()
        factor = min(3, len(self.brokers))
        self.ask("create", creation(topic("a", 2, factor), topic("b", 1, self.rng.randint(1, factor))))
        self.commit()

    def step(self) -> None:
        """One thing happens."""
        (action,) = self.rng.choices(self.actions, self.weights)
        getattr(self, action)()
        self.check_working()
        if self.rng.random() < 0.7:
            self.commit()

    def say(self, what: str) -> None:
        self.story.append(f"{self.now:.0f} {what}")

    def pass_time(self) -> None:
        self.now += self.rng.choice([50, 400, 1_500])
        while (decision := self.log.controller.decide_tick(self.now)).records:
            self.say(decision.name)
            self.log.run(decision)

    def wait_for_sessions(self) -> None:
        for broker in self.brokers.values():
            if broker.acting and self.rng.random() < 0.7:
                self.beat(broker)
        self.now += SESSION_MS / 2
        self.deliver_all()
        self.pass_time()

    # Mail

    def ask(self, what: str, request: Any, told: Callable[[Any], None] = ignore) -> None:
        self.say(what)
        leaving = self.image.brokers.get(getattr(request, "broker_id", NOTHING))
        reply = self.log.ask(request, self.now, told)
        hands_over = leaving is not None and leaving.in_controlled_shutdown and not leaving.fenced
        if leaving is not None and hands_over and getattr(reply, "should_shut_down", False):
            self.check_everybody_saw(self.brokers[leaving.id])

    def post(self, what: str, request: Any, told: Callable[[Any], None] = ignore) -> None:
        if len(self.mail) < 30:
            self.mail.append((what, request, told))

    def deliver(self) -> None:
        if self.mail:
            place = self.rng.randrange(len(self.mail))
            again = self.rng.random() < 0.1
            self.ask(*(self.mail[place] if again else self.mail.pop(place)))

    def deliver_all(self) -> None:
        while self.mail:
            self.ask(*self.mail.pop(0))
        self.commit()

    # Brokers

    def some_broker(self) -> Broker:
        return self.rng.choice(list(self.brokers.values()))

    def broker_moves(self) -> None:
        """A broker does the next thing that it has to do."""
        broker = self.some_broker()
        if not broker.running:
            self.start(broker)
        elif broker.paused:
            broker.paused = False
        elif broker.epoch == NOTHING:
            self.register(broker)
        else:
            if self.rng.random() < 0.8:
                broker.applied = max(broker.applied, self.log.published.offset)
            self.beat(broker)

    def start(self, broker: Broker) -> None:
        broker.running, broker.paused, broker.stopping = True, False, False
        broker.life += 1
        broker.epoch = NOTHING
        self.register(broker)

    def register(self, broker: Broker) -> None:
        life = broker.life

        def told(reply: Any) -> None:
            if reply.error_code == 0 and broker.running and broker.life == life and broker.epoch == NOTHING:
                broker.epoch, broker.dirty, broker.clean_epoch = reply.broker_epoch, False, NOTHING

        request = registration(
            broker.number, life=life, previous=broker.clean_epoch, log_dirs=[uuid_of(5_000 + broker.number)]
        )
        self.post(f"register {broker.number}.{life} after {broker.clean_epoch}", request, told)

    def beat(self, broker: Broker) -> None:
        life = broker.life

        def told(reply: Any) -> None:
            if reply.should_shut_down and broker.life == life and broker.stopping and broker.running:
                led = [self.name(key) for key, each in self.seen.items() if each.leader == broker.number]
                assert not led, f"{broker.number} stops and leads {led}"
                broker.running, broker.clean_epoch, broker.epoch = False, broker.epoch, NOTHING

        request = BrokerHeartbeatRequest(
            broker_id=broker.number,
            broker_epoch=broker.epoch,
            current_metadata_offset=broker.applied,
            want_fence=self.rng.random() < 0.03,
            want_shut_down=broker.stopping,
        )
        self.post(f"beat of {broker.number} at {broker.applied}{' stopping' * broker.stopping}", request, told)

    def restart(self) -> None:
        """A broker is killed and is back while what was sent before is still under way."""
        broker = self.some_broker()
        late, self.mail = self.mail, []
        self.kill(broker)
        for _ in range(2):
            for other in self.brokers.values():
                if other.acting:
                    self.beat(other)
            self.deliver_all()
            self.now += SESSION_MS / 2
        self.pass_time()
        self.start(broker)
        self.deliver_all()
        if broker.epoch != NOTHING:
            broker.applied = self.log.published.offset
            self.beat(broker)
        self.deliver_all()
        self.mail = late

    def some_broker_dies(self) -> None:
        self.kill(self.some_broker())

    def kill(self, broker: Broker) -> None:
        if broker.running:
            self.say(f"kill {broker.number}")
            broker.running, broker.epoch = False, NOTHING
            broker.clean_epoch = NOTHING
            broker.dirty = True
            for whole in self.whole.values():
                if self.rng.random() < 0.5:
                    whole.discard(broker.number)

    def pause(self) -> None:
        self.some_broker().paused = True

    def stop(self) -> None:
        self.some_broker().stopping = True

    # Leading and following

    def view(self, broker: Broker, key: Key) -> PartitionImage | None:
        """A partition as far as the broker has applied the log."""
        for offset, partition in reversed(self.history.get(key, ())):
            if offset <= broker.applied:
                return partition
        return None

    def some_leader(self) -> tuple[Broker, Key, PartitionImage] | None:
        broker = self.some_broker()
        if broker.acting and self.history:
            key = self.rng.choice(list(self.history))
            seen = self.view(broker, key)
            if seen is not None and seen.leader == broker.number and key in self.seen:
                return broker, key, seen
        return None

    def following(self, number: int, key: Key, led: PartitionImage) -> bool:
        broker = self.brokers[number]
        seen = self.view(broker, key)
        return broker.acting and seen is not None and seen.leader_epoch == led.leader_epoch

    def produce(self) -> None:
        """Records are committed: whoever the leader believes to be in sync has them, others may not."""
        found = self.some_leader()
        if found is None:
            return
        broker, key, led = found
        if self.unsettled.get((key, broker.number), NOTHING) >= led.partition_epoch:
            return
        if led.leader_epoch < self.given_up.get(key, 0):
            return  # what a leader of before still takes is lost, as whoever allows unclean elections has accepted
        held_back = len(led.isr) < min(self.minimum(broker), len(led.replicas))
        if not held_back and all(self.following(each, key, led) for each in led.isr):
            self.whole[key].intersection_update(led.isr)

    def minimum(self, broker: Broker) -> int:
        """min.insync.replicas as far as the broker has applied the log."""
        return next(value for offset, value in reversed(self.minimums) if offset <= broker.applied)

    def catch_up(self) -> None:
        found = self.some_leader()
        if found is not None:
            broker, key, led = found
            if broker.number in self.whole[key]:
                self.whole[key].update(each for each in led.replicas if self.following(each, key, led))

    def alter(self) -> None:
        """A leader reports who is in sync: truly, as far as it can know, but perhaps late."""
        found = self.some_leader()
        if found is None:
            return
        broker, key, led = found
        whole = self.whole[key] if broker.number in self.whole[key] else set[int]()
        members = []
        for each in led.replicas:
            follows = each == broker.number or self.following(each, key, led)
            if each == broker.number or (follows and (each in led.isr or each in whole) and self.rng.random() < 0.9):
                members.append((each, self.brokers[each].epoch))
        self.unsettled[key, broker.number] = led.partition_epoch
        made = AlterPartitionRequest
        data = made.PartitionData(
            partition_index=key[1],
            leader_epoch=led.leader_epoch,
            partition_epoch=led.partition_epoch,
            new_isr_with_epochs=[made.BrokerState(broker_id=each, broker_epoch=epoch) for each, epoch in members],
        )
        asked = made(
            broker_id=broker.number,
            broker_epoch=broker.epoch,
            topics=[made.TopicData(topic_id=key[0], partitions=[data])],
        )
        self.post(f"alter {self.name(key)} by {broker.number} to {members}", asked)

    # The administrator

    def reassign(self) -> None:
        if not self.seen:
            return
        topic_id, index = key = self.rng.choice(list(self.seen))
        if topic_id not in self.image.topics:
            return
        everybody = list(self.brokers)
        target = self.rng.sample(everybody, self.rng.randint(1, min(4, len(everybody))))
        wanted = None if self.rng.random() < 0.3 else target
        made = AlterPartitionReassignmentsRequest
        moved = made.ReassignablePartition(partition_index=index, replicas=wanted)
        name = self.image.topics[topic_id].name
        self.ask(
            f"reassign {self.name(key)} to {wanted}",
            made(topics=[made.ReassignableTopic(name=name, partitions=[moved])]),
        )
        self.log.ask(ListPartitionReassignmentsRequest(), self.now, ignore)

    def topics_change(self) -> None:
        names = [each.name for each in self.image.topics.values()]
        chance = self.rng.random()
        if chance < 0.3 and len(names) < 5:
            self.names += 1
            made = topic(f"t{self.names}", self.rng.randint(1, 3), self.rng.randint(1, 3))
            self.ask(f"create {made.name}", creation(made))
        elif chance < 0.5 and len(names) > 1:
            name = self.rng.choice(names)
            self.ask(f"delete {name}", DeleteTopicsRequest(topic_names=[name]))
        elif chance < 0.7 and names:
            name = self.rng.choice(names)
            grown = len(self.image.topics[self.image.ids[name]].partitions) + 1
            wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=grown, assignments=None)
            self.ask(f"grow {name}", CreatePartitionsRequest(topics=[wanted] if grown < 6 else []))
        elif names and chance < 0.85:
            value = self.rng.choice(["true", "false", "false"])
            self.set_config(CONFIG_TOPIC, self.rng.choice(names), "unclean.leader.election.enable", value)
        else:
            self.set_config(CONFIG_BROKER, "", "min.insync.replicas", self.rng.choice(["1", "2", "3"]))

    def set_config(self, kind: int, whose: str, name: str, value: str) -> None:
        made = IncrementalAlterConfigsRequest
        change = made.AlterableConfig(name=name, config_operation=0, value=value)
        resource = made.AlterConfigsResource(resource_type=kind, resource_name=whose, configs=[change])
        self.ask(f"{name} of {whose or 'all'} is {value}", made(resources=[resource]))

    def elect(self) -> None:
        kind = self.rng.choice([0, 0, 0, 1])
        self.ask(f"elect {kind}", ElectLeadersRequest(election_type=kind, topic_partitions=None))

    def sweep(self) -> None:
        controller = self.log.controller
        for decision in (controller.decide_preferred_leaders, controller.decide_unclean_leaders):
            self.log.run(decision())

    def unregister(self) -> None:
        broker = self.some_broker()
        if not broker.running:
            self.ask(f"unregister {broker.number}", UnregisterBrokerRequest(broker_id=broker.number))

    def fail_over(self) -> None:
        self.say("failover")
        self.log.fail_over(self.now)

    def snapshot(self) -> None:
        self.log.take_snapshot()

    # Checking

    def name(self, key: Key) -> str:
        found = self.image.topics.get(key[0]) or self.log.published.topics.get(key[0])  # type: ignore[call-overload]
        return f"{found.name if found is not None else 'deleted'}-{key[1]}"

    def commit(self) -> None:
        for _ in self.log.commit():
            published = self.log.published
            delta = published.take_delta()
            if delta.configs:
                value = published.config(CONFIG_BROKER, "").get("min.insync.replicas", "1")
                self.minimums.append((published.offset, int(value)))
            for topic_id in delta.deleted:
                for key in [each for each in self.seen if each[0] == topic_id]:
                    del self.seen[key], self.whole[key]
            for topic_id, indexes in delta.partitions.items():
                for index in sorted(indexes):
                    self.publish((topic_id, index), published.topics[topic_id].partitions[index])
        self.log.tell()

    def publish(self, key: Key, now: PartitionImage) -> None:
        """A partition has changed for everybody to see."""
        old, name = self.seen.get(key), self.name(key)
        check_partition(self.log.published, name, now)
        self.seen[key] = now
        self.history.setdefault(key, []).append((self.log.published.offset, now))
        if old is None:
            self.whole[key] = set(now.replicas)
            return
        check_step(name, old, now)
        self.say(f"{name} is {now.leader}/{now.isr}/{now.elr} of {now.replicas}, epoch {now.leader_epoch}")
        whole = self.whole[key]
        whole.intersection_update(now.replicas)
        if now.leader >= 0 and now.leader_epoch != old.leader_epoch and now.leader != old.leader:
            trusted = now.leader in (*old.isr, *old.elr)
            if not self.elr or (now.leader_recovery_state == RECOVERING and not trusted):
                self.whole[key] = {now.leader}  # what it has is what there is from now on
                self.given_up[key] = now.leader_epoch
            else:
                broker = self.brokers[now.leader]
                assert now.leader in whole or broker.dirty, f"{name}: {now.leader} was elected and lacks records"
        if self.elr:
            for member in (*now.isr, *now.elr):
                lost = member not in self.whole[key] and not self.brokers[member].dirty
                assert not lost, f"{name}: {member} is trusted to have every record and does not: {now}"

    def check_working(self) -> None:
        """What the controller believes must be legal as well, although nobody has seen it."""
        image, state = self.image, (self.log.epoch, self.log.end)
        if not image.in_transaction and state != self.checked:
            self.checked = state
            for each in image.topics.values():
                for partition in each.partitions:
                    check_partition(image, each.name, partition)

    def check_everybody_saw(self, broker: Broker) -> None:
        """A broker that handed over and may stop now is nobody's leader any more in the eyes of those who serve."""
        for other in self.brokers.values():
            registered = self.image.brokers.get(other.number)
            if other.acting and registered is not None and registered.active and registered.epoch == other.epoch:
                for key in self.seen:
                    seen = self.view(other, key)
                    assert seen is None or seen.leader != broker.number, f"{other.number} still follows {broker.number}"

    def check_at_end(self) -> None:
        self.log.check_replays()
        if not self.image.in_transaction:
            check_index(self.image, self.log.controller._world.index)


ACTIONS = {
    "deliver": 30.0,
    "broker_moves": 25.0,
    "pass_time": 8.0,
    "wait_for_sessions": 2.0,
    "some_broker_dies": 3.0,
    "restart": 1.0,
    "pause": 2.0,
    "stop": 2.0,
    "produce": 10.0,
    "catch_up": 10.0,
    "alter": 15.0,
    "reassign": 6.0,
    "topics_change": 3.0,
    "elect": 1.0,
    "sweep": 1.0,
    "unregister": 0.5,
    "fail_over": 2.0,
    "snapshot": 1.0,
}
