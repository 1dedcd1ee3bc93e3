"""Draws requests of clients: well-formed, of any version, about things that exist and about things that do not.

A request is drawn from its declaration; what a field may hold is found by its struct and name, else by its name. APIs
whose fields belong together are drawn as a whole (`groups.py`, `configs.py`, and Produce and Fetch here).

Not drawn: what would stop a broker or wait for long, what only brokers send, and acks=0, which nobody answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.model.ids import METADATA_TOPIC, OFFSETS_TOPIC, ZERO_UUID, Uuid
from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.registry import Api
from penstock.protocol.schema import Field, schema_of
from penstock.protocol.source import Shape
from tests.compat.answers.chance import Chance
from tests.compat.answers.configs import ConfigRequests
from tests.compat.answers.groups import GroupRequests
from tests.compat.answers.record_data import RecordData
from tests.compat.answers.world import BASE_MS, GROUPS, NEVER, PASSING, STEADY, World

INT32_MAX, INT64_MAX = (1 << 31) - 1, (1 << 63) - 1
FEATURES = (
    "metadata.version", "group.version", "transaction.version", "share.version", "streams.version", "kraft.version",
    "eligible.leader.replicas.version", "unheard.of", "",
)  # fmt: skip
Maker = Callable[[], Any]


class Drawing:
    """A source of requests. A seed draws the same requests again as long as the world answers the same."""

    def __init__(self, seed: int, world: World) -> None:
        self.random, self.world = Chance(seed), world
        self._records = RecordData(self.random, world)
        configs, groups = ConfigRequests(self.random), GroupRequests(self.random, world)
        self._whole: dict[str, Callable[[Any, int], Any]] = {
            "Produce": self._produce,
            "Fetch": self._fetch,
            "Metadata": self._metadata,
            "UpdateFeatures": self._update_features,
            **configs.makers,
            **groups.makers,
        }
        self._by_struct, self._by_name = self._tables(configs)

    def request(self, api: Api, version: int) -> Any:
        whole = self._whole.get(api.name)
        if whole is not None:
            return whole(api.request(), version)
        return self._struct(Shape.of(schema_of(api.request()), version))

    # -- any declaration

    def _struct(self, shape: Shape) -> Any:
        drawn = {field.name: self._field(shape, field) for field in (*shape.body, *shape.tagged)}
        return shape.schema.cls(**drawn)

    def _field(self, shape: Shape, field: Field) -> Any:
        structs = field.of in shape.structs
        maker = self._by_struct.get((shape.schema.name, field.name))
        if maker is None and shape.nullable(field) and self.random.happens(0.1):
            return None
        if maker is None and not structs:
            maker = self._by_name.get(field.name)
        if maker is None:
            if field.kind == "boolean":
                return self.random.happens(0.5)
            assert structs, f"nobody says what {shape.schema.name}.{field.name} may hold"
            inner = shape.inner(field.of)
            maker = lambda: self._struct(inner)  # noqa: E731 (a maker like the others)
        return self.random.several(maker) if field.kind == "array" else maker()

    def _one_of(self, *values: Any) -> Maker:
        return lambda: self.random.choice(values)

    def _tables(self, configs: ConfigRequests) -> tuple[dict[tuple[str, str], Maker], dict[str, Maker]]:
        one_of = self._one_of
        some_group = one_of(*GROUPS)
        by_name: dict[str, Maker] = {
            "topic": self.topic,
            "topic_name": self.topic,
            "name": self.topic,
            "topic_id": self.topic_id,
            "partition": self.partition,
            "partition_index": self.partition,
            "partition_indexes": self.partition,
            "partitions": self.partition,
            "current_leader_epoch": one_of(-1, -1, -1, 0, 0, 1, 99),
            "leader_epoch": one_of(-1, 0, 0, 1, 99, INT32_MAX),
            "isolation_level": one_of(0, 1),
            "timeout_ms": one_of(10_000, 60_000, INT32_MAX),
            "groups": some_group,
            "group_ids": some_group,
            "groups_names": some_group,
            "topic_names": self.deletable,
            "replica_id": one_of(-1, -1, -1, -2),
            "num_partitions": one_of(1, 1, 1, 2, 3, -1, 0, -2),
            "replication_factor": one_of(1, 1, 1, -1, 0, 2, -2),
            "broker_ids": one_of(1, 1, 1, 1, 2, -1),
            "replicas": one_of(1, 1, 1, 2, -1),
            "count": one_of(1, 2, 3, 4, 0, -1),
            "offset": one_of(-1, 0, 1, 3, 1_000_000, -2),
            "key": one_of("g-committed", "g-empty", "new-group", ""),
            "coordinator_keys": one_of("g-committed", "g-empty", "new-group", ""),
            "key_type": one_of(0, 0, 0, 0, 3, -1),
            "states_filter": one_of("Empty", "Stable", "stable", "Dead", "CompletingRebalance", "unheard of"),
            "types_filter": one_of("classic", "Consumer", "share", "unheard of"),
            "client_software_name": one_of("answers", "an-swers", "not a name", ""),
            "client_software_version": one_of("1.0", "1 0", ""),
            "transaction_timeout_ms": one_of(60_000, INT32_MAX, 0, -1),
            "producer_id": one_of(-1, -1, 4_000, 5),
            "producer_epoch": one_of(-1, -1, 0, 5),
            "coordinator_epoch": one_of(-1, 0, 0, 1, 5),
            "transaction_version": one_of(0, 0, 1, 2, 2, 7),
            "transactional_id": one_of("t", "t", "u", ""),
            "group_id": some_group,
            "generation_id": one_of(-1, -1, 0, 1),
            "member_id": one_of("", "", "nobody"),
            "group_instance_id": one_of("i", ""),
            "committed_offset": one_of(0, 1, 1_000, -1),
            "committed_leader_epoch": one_of(-1, -1, 0, 5),
            "committed_metadata": one_of("", "here", "m" * 4_097),
            "v3_and_below_transactional_id": one_of("t", "t", "u", ""),
            "v3_and_below_producer_id": one_of(-1, 1_000, 5),
            "v3_and_below_producer_epoch": one_of(-1, 0, 5),
            "transactional_ids": one_of("t", "t", "u", ""),
            "state_filters": one_of("Ongoing", "Empty", "ongoing", "unheard of"),
            "producer_id_filters": one_of(1_000, 5, -1),
            "duration_filter": one_of(-1, -1, 0, 60_000),
            "transactional_id_pattern": one_of("t.*", "", "(", ".*"),
            "resource_types": one_of(2, 4, 8, 16, 32, 0, 99),
            "election_type": one_of(0, 0, 1, 7),
            "response_partition_limit": one_of(2000, 1, 2, 0, -1),
            "endpoint_type": one_of(1, 1, 1, 2, 0, 7),
            "path": lambda: self.random.choice((self.world.directory, "/elsewhere", "relative", "")),
            "cluster_id": lambda: self.random.choice(("another cluster", "another cluster", self.world.cluster_id)),
            "broker_id": one_of(2, 99, -1),
            "voter_id": one_of(7, 99),
            "voter_directory_id": one_of(ZERO_UUID, Uuid(b"nobody's voter, ")),
        }
        rules = ("resource_type", "resource_type_filter", "resource_pattern_type", "pattern_type_filter", "operation")
        by_name |= dict.fromkeys((*rules, "permission_type"), one_of(1, 2, 2, 3, 3, 3, 4, 0))
        names = ("resource_name", "resource_name_filter", "principal", "principal_filter", "host", "host_filter")
        by_name |= dict.fromkeys(names, one_of("alpha", "User:anna", "*", "127.0.0.1", ""))
        some_name = one_of("anna", "bert", "User", "")
        by_name |= {
            "entity_type": one_of("user", "user", "client-id", "ip", "group", ""),
            "entity_name": one_of("anna", "app", "127.0.0.1", ""),
            "match_type": one_of(0, 0, 1, 2, 7),
            "match": one_of("anna", "app", ""),
            "mechanism": one_of(1, 2, 2, 0, 7),
            "iterations": one_of(4_096, 8_192, 4_095, 16_385, -1),
            "salt": one_of(b"salt", b""),
            "salted_password": one_of(b"salted"),  # without one Kafka fails inside
            **dict.fromkeys(("principal_type", "owner_principal_type"), one_of("User", "User", "Group", "")),
            **dict.fromkeys(("principal_name", "owner_principal_name"), some_name),
            **dict.fromkeys(("max_lifetime_ms", "renew_period_ms", "expiry_time_period_ms"), one_of(-1, 0, 1_000)),
            "hmac": one_of(b"nobody's", b""),
            "auth_bytes": one_of(b"\0anna\0secret", b""),
        }
        by_struct: dict[tuple[str, str], Maker] = {
            ("OpData", "key"): one_of("producer_byte_rate", "request_percentage", "connection_creation_rate", "x"),
            # Nobody reaches a limit that is allowed: how long a broker waits then is up to its own speed.
            ("OpData", "value"): one_of(1e12, 1e12 + 1_024, 1e12 + 0.5, -1.0, float(1 << 63)),
            # A name without a kind makes Kafka fail inside.
            ("CreateDelegationTokenRequest", "owner_principal_type"): one_of("User", "User", "Group", ""),
            ("UserName", "name"): some_name,
            ("ScramCredentialDeletion", "name"): some_name,
            ("ScramCredentialUpsertion", "name"): some_name,
            ("SaslHandshakeRequest", "mechanism"): one_of("PLAIN", "SCRAM-SHA-512", ""),
            ("ListOffsetsPartition", "timestamp"): one_of(
                -1, -1, -2, -2, -3, -4, -5, -6, -7, 0, BASE_MS, BASE_MS + 1, BASE_MS + 3, INT64_MAX
            ),
            ("CreatableTopic", "name"): self.passing,
            ("CreatableTopic", "assignments"): self._assignment,
            ("CreatableTopicConfig", "name"): configs.topic_name,
            ("CreatableTopicConfig", "value"): configs.topic_value,
            ("InitProducerIdRequest", "transactional_id"): one_of(None, None, None, None, "", "t"),
            ("CreatePartitionsTopic", "name"): self.growing,
            ("DeleteTopicState", "name"): lambda: self.random.choice((None, self.deletable(), self.deletable())),
            ("DeleteTopicState", "topic_id"): self._deletable_id,
            ("TopicRequest", "name"): lambda: self.topic() or NEVER,
            ("TopicData", "topic_name"): one_of(METADATA_TOPIC, METADATA_TOPIC, "alpha", NEVER),
            ("Cursor", "partition_index"): one_of(0, 1, 2, 5, -1),
            ("AddRaftVoterRequest", "cluster_id"): one_of("another cluster"),
            ("AddRaftVoterRequest", "listeners"): self._listener,
        }
        return by_struct, by_name

    # -- what there is

    def topic(self) -> str:
        kind = self.random.random()
        if kind < 0.6:
            return self.random.choice(tuple(STEADY))
        if kind < 0.85:
            return self.random.choice(PASSING)
        return self.random.choice((NEVER, NEVER, "", ".", "not a name!", "x" * 250, OFFSETS_TOPIC))

    def passing(self) -> str:
        """A topic to be made."""
        if self.random.happens(0.85):
            return self.random.choice(PASSING)
        return self.random.choice((*STEADY, "", "..", "not a name!", "x" * 250))

    def growing(self) -> str:
        return self.random.choice((*PASSING, *PASSING, NEVER, "", "x" * 250))

    def deletable(self) -> str:
        return self.random.choice((*PASSING, NEVER, NEVER, "", "not a name!"))

    def topic_id(self) -> Uuid:
        known = [self.world.ids[name] for name in STEADY if name in self.world.ids] * 3
        known += [topic_id for name, topic_id in self.world.ids.items() if name in PASSING]
        return self.random.choice((*known, *self.world.stale_ids[-2:], ZERO_UUID, Uuid(b"nobody's topic, ")))

    def _deletable_id(self) -> Uuid:
        known = [topic_id for name, topic_id in self.world.ids.items() if name in PASSING]
        nobody = (ZERO_UUID, ZERO_UUID, ZERO_UUID, Uuid(b"nobody's topic, "))
        return self.random.choice((*known, *self.world.stale_ids[-2:], *nobody))

    def partition(self) -> int:
        return self.random.choice((0, 0, 0, 0, 1, 1, 2, 5, -1, INT32_MAX))

    def _assignment(self) -> Any:
        return CreateTopicsRequest.CreatableReplicaAssignment(
            partition_index=self.random.choice((0, 0, 0, 1, 5, -1)),
            broker_ids=self.random.choice(([1], [1], [1], [2], [], [1, 1], [-1])),
        )

    def _listener(self) -> Any:
        name = self.random.choice(("CONTROLLER", "ELSEWHERE"))
        return AddRaftVoterRequest.Listener(name=name, host="127.0.0.1", port=9)

    # -- records

    def _produce(self, made: Any, version: int) -> Any:
        acks = self.random.choice((-1, -1, -1, 1, 1, 2, -2))

        def topic() -> Any:
            name = self.topic()
            found = self.world.ids.get(name, Uuid(b"nobody's topic, "))
            index = self.partition()
            data = made.PartitionProduceData(
                index=index, records=self._records.draw(name, index, plain=abs(acks) > 1 or name == OFFSETS_TOPIC)
            )
            if version >= 13:
                return made.TopicProduceData(topic_id=found, partition_data=[data])
            return made.TopicProduceData(name=name, partition_data=[data])

        return made(
            acks=acks,
            timeout_ms=self.random.choice((-1, 0, 1_000)),
            topic_data=self.random.several(topic, twice=False),
        )

    def _fetch(self, made: Any, version: int) -> Any:
        choice = self.random.choice

        def named() -> dict[str, Any]:
            if version < 13:
                topic = self.topic()
                # What coordinators keep for themselves is compared by what they tell of it.
                return {"topic": NEVER if topic == OFFSETS_TOPIC else topic}
            topic_id = self.topic_id()
            return {"topic_id": Uuid(b"nobody's topic, ") if topic_id == ZERO_UUID else topic_id}

        def partition() -> Any:
            wanted = made.FetchPartition(
                partition=self.partition(),
                fetch_offset=choice((0, 0, 0, 1, 2, 5, 20, -1, 1_000_000)),
                partition_max_bytes=choice((1 << 20, 1 << 20, 0, 1, 100)),
            )
            if version >= 9:
                wanted.current_leader_epoch = choice((-1, -1, -1, 0, 1))
            if version >= 12:
                wanted.last_fetched_epoch = choice((-1, -1, -1, 0, 5))
            return wanted

        request = made(
            max_wait_ms=choice((0, 0, 1, 10)),
            min_bytes=choice((0, 1, 1, 100)),
            max_bytes=choice((INT32_MAX, INT32_MAX, 1 << 20, 200, 1, 0)),
            isolation_level=choice((0, 1)),
            topics=self.random.several(lambda: made.FetchTopic(**named(), partitions=self.random.several(partition))),
        )
        if version >= 7 and self.random.happens(0.6):
            sessions = [(0, 0), (0, 0), (0, -1), (7, 1), (0, 5), *list(self.world.sessions.items())[-4:]]
            request.session_id, request.session_epoch = choice(sessions)
            if self.random.happens(0.2):
                request.forgotten_topics_data = [made.ForgottenTopic(**named(), partitions=[0, 1])]
        return request

    # -- topics

    def _metadata(self, made: Any, version: int) -> Any:
        def topic() -> Any:
            topic_id = self.topic_id()
            if version >= 12 and topic_id != ZERO_UUID and self.random.happens(0.5):
                return made.MetadataRequestTopic(topic_id=topic_id, name=None)
            return made.MetadataRequestTopic(name=self.topic())

        asks = self.random.happens
        request = made(topics=None if version >= 1 and asks(0.1) else self.random.several(topic))
        if version >= 4:
            request.allow_auto_topic_creation = asks(0.5)
        if version >= 8:
            request.include_topic_authorized_operations = asks(0.5)
        if 8 <= version <= 10:
            request.include_cluster_authorized_operations = asks(0.5)
        return request

    # -- features

    def _update_features(self, made: Any, version: int) -> Any:
        """Nothing that would succeed: the brokers would not be the same afterwards."""

        def update() -> Any:
            if version == 0:
                return made.FeatureUpdateKey(
                    feature=self.random.choice(FEATURES[-2:]),
                    max_version_level=self.random.choice((1, 2, 99)),
                    allow_downgrade=self.random.happens(0.5),
                )
            return made.FeatureUpdateKey(
                feature=self.random.choice(FEATURES),
                # Level 0 of a feature that nobody knows is no change to us.
                max_version_level=self.random.choice((1, 2, 20, 99, -1)),
                upgrade_type=self.random.choice((1, 1, 2, 3, 0, 9)),
            )

        updates = self.random.several(update)
        return made(feature_updates=updates, validate_only=True) if version else made(feature_updates=updates)
