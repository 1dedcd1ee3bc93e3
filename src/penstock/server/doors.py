"""What a handler is given, whom it may ask, and what it may give back: all that handlers know of the server.

Drivers stand behind narrow doors, which are types only; the parts that build a node put drivers behind them.

A handler is `handle(ctx, request)`. It may return

- a response message: the reply is queued at once, no task is made;
- an awaitable of one: the connection starts its next request when it is done;
- a `Later`: the request has left `do`, only its reply waits; the next request may start meanwhile;
- `Encoded(parts)`: the body is encoded already;
- `NO_REPLY`: the protocol sends nothing back (Produce with acks=0).

Raising `Disconnect(why)` closes the connection of the request and no other.

A module may have a second handler for requests without anything unusual in them, `handle_plain(ctx, frame, position,
correlation_id)`: it reads the frame itself and returns the whole frame of the reply as bytes, any of the above, or
None when nothing was done and `handle` must see the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Concatenate, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from penstock.model.errors import PenstockError
from penstock.model.security import ANONYMOUS as ANONYMOUS
from penstock.model.security import CLUSTER_NAME as CLUSTER_NAME
from penstock.model.security import Operation as Operation
from penstock.model.security import Principal as Principal
from penstock.model.security import ResourceType as ResourceType
from penstock.protocol.wire import Message as Message
from penstock.replication.verifying import VerifyMode as VerifyMode

if TYPE_CHECKING:
    from penstock.coordinators.decision import Decision, Moment, ProducerEpoch
    from penstock.coordinators.groups.shard import GroupShard
    from penstock.coordinators.transactions.settings import TransactionSettings
    from penstock.coordinators.transactions.shard import TransactionShard
    from penstock.kernels import PlainProduce
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings
    from penstock.model.errors import Corrupt, ErrorCode, StorageFailed
    from penstock.model.ids import NodeId, Offset, Uuid
    from penstock.model.ports import Clock
    from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
    from penstock.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
    from penstock.protocol.messages.describe_quorum import DescribeQuorumResponse
    from penstock.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
    from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
    from penstock.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
    from penstock.protocol.messages.metadata import MetadataResponse
    from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
    from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
    from penstock.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
    from penstock.protocol.messages.vote import VoteRequest, VoteResponse
    from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
    from penstock.protocol.registry import Api
    from penstock.protocol.wire import Records
    from penstock.replication.partition import Partition
    from penstock.security.acl_index import AclIndex
    from penstock.storage.log import Log
    from penstock.storage.reports import DirectoryReport

R = TypeVar("R")

OPERATIONS_NOT_ASKED: Final = -(1 << 31)
"""What `*_authorized_operations` fields hold when the client did not ask for them."""

_OPERATIONS_OF: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}


class ListenerInfo(NamedTuple):
    """The listener through which a client came. `port` is the one really bound, also when 0 was asked for."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"
    for_controllers: bool = False
    """Whether its name is in `controller.listener.names`: other APIs are served there."""


LOOPBACK: Final = ListenerInfo("PLAINTEXT", "127.0.0.1", 9092)
"""Where a request comes from when a test does not care."""


class Later:
    """A reply that waits while the connection goes on with the next request.

    Whoever waits for it sets `when_ready`, which is called once, and not from within the handler; then `outcome` has
    what a handler may return, or the whole frame of the reply. When nobody waits yet, because the reply came first or
    whoever would have waited is gone, it is `missed`: who comes after that has nothing to wait for.
    """

    __slots__ = ("missed", "when_ready")

    def __init__(self) -> None:
        self.when_ready: Callable[[], None] | None = None
        self.missed = False

    def ready(self) -> None:
        """Tells whoever waits."""
        if self.when_ready is None:
            self.missed = True
        else:
            self.when_ready()

    def outcome(self) -> bytes | Outcome:
        raise AssertionError("a reply without a maker")


class Encoded:
    """A response body that is encoded already: bytes and file spans, without the response header."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Records]) -> None:
        self.parts = parts


class NoReply(Enum):
    """The type of `NO_REPLY`."""

    NO_REPLY = "no reply"


NO_REPLY: Final = NoReply.NO_REPLY

Settled: TypeAlias = "Message | Later | Encoded | NoReply"
"""What an awaitable of a handler may come to."""

Outcome: TypeAlias = "Message | Later | Encoded | NoReply | Awaitable[Settled]"
"""What `handle` returns."""

PlainOutcome: TypeAlias = "bytes | Outcome | None"
"""What `handle_plain` returns."""

Handler: TypeAlias = Callable[Concatenate["Context", ...], Outcome]
"""Takes the context and the request, of the class that the API's registry names."""

PlainHandler: TypeAlias = Callable[["Context", bytearray, int, int], PlainOutcome]
"""Takes the context, the frame, where the body begins in it, and the correlation id."""

Allowed: TypeAlias = Callable[[str], bool]
"""Whether the client may do what it asks to the topic of that name."""

Refuse: TypeAlias = Callable[["ErrorCode"], R]
"""Makes the reply of one API that tells an error."""


class Disconnect(PenstockError):
    """The only fitting answer is to hang up; `why` goes to the log."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Authorizer(Protocol):
    """Decides who may do what."""

    @property
    def acls(self) -> AclIndex | None:
        """What it decides by, for reading; None when there are no ACLs to keep."""

    @property
    def version(self) -> int:
        """Moves whenever the answer to any question may have changed."""

    def allows(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool: ...
    def allows_any(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there may be a resource of the type to which the operation is allowed."""

    def denied(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        """Somebody was refused what it asked for by name, and not only shown less."""


AUDIT_CLIENT: Final = "__penstock_audit"
"""The client id of nodes that write audit records to each other."""


class AuditDoor(Protocol):
    """Where it is told who was refused what, and who changed what."""

    @property
    def tells_allowed(self) -> bool:
        """Whether also what was allowed is told."""

    def denied(self, ctx: Context, operation: Operation, resource_type: ResourceType, name: str) -> None: ...
    def allowed(self, ctx: Context, operation: Operation, resource_type: ResourceType, name: str) -> None: ...
    def login_failed(
        self, address: str, listener: str, client_id: str | None, mechanism: str, name: str, reason: str
    ) -> None: ...
    def changed(self, ctx: Context, request: Message, reply: Message | None, error_code: int = 0) -> None:
        """A request that may change things was answered; without a reply `error_code` says why there is none."""


class StoresDoor(Protocol):
    """Whether the listeners of this node could go on with other key and trust stores."""

    def check(self, image: ClusterImage, own: Mapping[str, str], named: Collection[str]) -> Awaitable[None]:
        """Refused unless all listeners of the `named` configs can; `own` are this node's after the change."""


class ConnectionDoor(Protocol):
    """What handlers and drivers may know of, and do to, the connection behind a request."""

    number: int
    """Unique in the life of the node; for logs and for keys of per-connection state."""
    software: tuple[str, str]
    """Name and version of the client library, as told by ApiVersions v3."""

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Calls back once, when the connection is gone; at once when it is gone already."""

    def mute(self, duration_ms: float) -> None:
        """Starts no further request of this connection for that long. Replies still leave."""

    def close(self) -> None: ...


class MetadataDoor(Protocol):
    """The cluster as this node has published it."""

    node_id: NodeId
    cluster_id: str
    fragments: dict[Uuid, dict[tuple[object, ...], MetadataResponse.MetadataResponseTopic]]
    """Encoded pieces of replies by topic id, then by what they depend on; forgotten when the topic or a broker
    changes."""

    @property
    def image(self) -> ClusterImage: ...


class ControllerDoor(Protocol):
    """Where changes to metadata are decided."""

    def submit(self, request: Message, ctx: Context) -> Awaitable[Message]:
        """Runs the decision that matches the request's class; done when it is committed and published here."""

    def forward(self, request: Message, ctx: Context) -> Awaitable[Message]:
        """The active controller's reply to a request that only it can answer, wherever it is."""


class ProducerIdsDoor(Protocol):
    """Blocks of producer ids, allotted by the controller."""

    def take(self) -> int | Awaitable[int]:
        """An id that nobody had before; an awaitable when the next block has to be fetched first."""

    def at_hand(self) -> Awaitable[None]:
        """Returns when one can be taken without waiting; Refused when the controller gives none."""


class HostedDoor(Protocol):
    """One partition that has a replica here."""

    @property
    def state(self) -> Partition:
        """What this node is for it, and how far it may be read."""

    def require_log(self) -> Log:
        """Its log; Refused while the directory is offline."""


class PartitionsDoor(Protocol):
    """The replicas of this node, for those who look at one or trim it."""

    @property
    def taking_up(self) -> bool:
        """Whether partitions wait for their turn; one that is asked for has it at once, and that takes a moment."""

    def named(self, topic: str, partition: int) -> HostedDoor:
        """The partition, or the refusal that tells the client where it went wrong."""

    def delete_records(
        self, topic: str, partition: int, offset: int, timeout_ms: int = 0
    ) -> Offset | Awaitable[Offset]:
        """Moves the log start to `offset`, -1 being the high watermark; answers the low watermark."""

    def storage_failed(self, failure: StorageFailed) -> None:
        """A directory that fails goes offline alone."""

    def damaged(self, damage: Corrupt) -> None:
        """A read met damage: it is told, and clients are refused what it hides."""


class PlainProducesDoor(Protocol):
    """The short way of a produce."""

    def produce(
        self,
        request: PlainProduce,
        frame: bytearray,
        position: int,
        version: int,
        allowed: Allowed,
        *,
        correlation_id: int,
        listener: str,
    ) -> bytes | ProduceResponse | Later | None:
        """The whole frame of the reply, or what the long way returns; None when that must be taken from the start."""


class Verifier(Protocol):
    """Asks the coordinators of transactions, wherever they are, which partitions are part of them."""

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[tuple[str, int]],
        mode: VerifyMode,
    ) -> Awaitable[Mapping[tuple[str, int], ErrorCode]]:
        """What the coordinator says of each partition. One that it says nothing of was not answered."""


class MarkersDoor(Protocol):
    """Ends transactions in partitions."""

    def write(
        self, request: WriteTxnMarkersRequest, timeout_ms: int
    ) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
        """Writes all markers; answered when they are on all replicas in sync, or time is up."""

    def refuse_all(self, request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse: ...


class ProducesDoor(Protocol):
    """Admits batches, writes them, and waits for what acks promises."""

    @property
    def plain(self) -> PlainProducesDoor: ...
    @property
    def markers(self) -> MarkersDoor: ...
    def produce(
        self,
        request: ProduceRequest,
        version: int,
        allowed: Allowed,
        *,
        internal_too: bool = False,
        listener: str = "",
    ) -> ProduceResponse | Later | Awaitable[ProduceResponse | Later]:
        """`internal_too` lets the caller write into the topics that coordinators live in."""

    def refuse_all(self, request: ProduceRequest, error: ErrorCode) -> ProduceResponse: ...
    def refuse_known(
        self, request: ProduceRequest, version: int, allowed: Allowed, error: ErrorCode
    ) -> ProduceResponse:
        """Refuses with `error` what could be written; what is not here is told so first, as in Kafka's order."""

    def failure_of(self, response: ProduceResponse) -> str | None:
        """The first error in a reply that nobody will be sent."""


class Toll(Protocol):
    """What a client with a quota pays for a fetch."""

    @property
    def bytes_max(self) -> int:
        """No reply may be larger, but for a single batch."""

    def pays(self, reply_bytes: int) -> bool:
        """Charges a reply of about that size. False when an empty one has to go out instead. Asked once."""


class FetchesDoor(Protocol):
    """Sessions and waiting fetches."""

    def fetch(
        self,
        request: FetchRequest,
        version: int,
        allowed: Allowed,
        listener: str = "",
        toll: Toll | None = None,
        rights: Hashable = None,
    ) -> FetchResponse | Awaitable[FetchResponse]:
        """`listener` is the one the client came by: it is told where to find leaders on it.

        Whoever resumes a session with other `rights` than the last one is asked about all of its partitions.
        """


class LogsDoor(Protocol):
    """The log directories."""

    def describe(self) -> list[DirectoryReport]: ...


class RelocationsDoor(Protocol):
    """Moves replicas between log directories."""

    def alter(self, topic: str, partition: int, path: str) -> None:
        """Begins to move a replica to the directory at `path`, or refuses."""


class GroupsDoor(Protocol):
    """The groups whose shards live here. `refuse` makes the reply when this node cannot coordinate, or not now."""

    def home_of(self, group_id: str) -> int:
        """The partition of the offsets topic that a group belongs to."""

    def topic_made(self) -> Awaitable[None]:
        """Returns when the offsets topic shows in the published image, or cannot be made now."""

    def ask(self, group_id: str, request: Message, asker: Context, refuse: Refuse[R]) -> R | Awaitable[R]:
        """Puts one request of one group to its shard: the reply, or an awaitable of it when it waits."""

    def ask_in_transaction(
        self,
        group_id: str,
        request: Message,
        asker: Context,
        refuse: Refuse[R],
        *,
        transactional_id: str,
        producer: ProducerEpoch,
        mode: VerifyMode,
    ) -> R | Awaitable[R]:
        """The same for what becomes part of a producer's transaction, once its coordinator agrees."""

    def act(
        self, group_id: str, decide: Callable[[GroupShard, Moment], Decision], refuse: Refuse[R]
    ) -> R | Awaitable[R]:
        """The same for a decision about one group that is not a whole request."""

    def look(self, group_id: str, read: Callable[[GroupShard, Moment], R], refuse: Refuse[R]) -> R | Awaitable[R]:
        """What `read` sees of a group's shard, as soon as it is committed."""

    def look_at_all(self, read: Callable[[GroupShard, Moment], R], refuse: Refuse[R]) -> Sequence[R | Awaitable[R]]:
        """The same for every shard here that may know a group."""


class TransactionsDoor(Protocol):
    """The transactional ids whose shards live here. `refuse` makes the reply when this node cannot coordinate."""

    @property
    def settings(self) -> TransactionSettings:
        """What holds for every id, whoever coordinates it."""

    def home_of(self, transactional_id: str) -> int:
        """The partition of the transaction state topic that an id belongs to."""

    def topic_made(self) -> Awaitable[None]:
        """Returns when the transaction state topic shows in the published image, or cannot be made now."""

    def ask(self, transactional_id: str, request: object, asker: Context, refuse: Refuse[R]) -> R | Awaitable[R]:
        """Puts one request of one id to its shard: the reply, or an awaitable of it when it waits."""

    def look(
        self, transactional_id: str, read: Callable[[TransactionShard, Moment], R], refuse: Refuse[R]
    ) -> R | Awaitable[R]:
        """What `read` sees of an id's shard, as soon as it is committed."""

    def look_at_all(
        self, read: Callable[[TransactionShard, Moment], R], refuse: Refuse[R]
    ) -> Sequence[R | Awaitable[R]]:
        """The same for every shard here that may know an id."""


class QuorumDoor(Protocol):
    """The metadata quorum, for those who describe it and for those who take part in it."""

    @property
    def leading(self) -> bool:
        """Whether this node is the active controller."""

    @property
    def leader(self) -> NodeId:
        """Who is, as far as this node knows; -1 for nobody."""

    def describe(self) -> Awaitable[DescribeQuorumResponse]: ...
    def add_voter(self, request: AddRaftVoterRequest) -> Awaitable[AddRaftVoterResponse]: ...
    def remove_voter(self, request: RemoveRaftVoterRequest) -> Awaitable[RemoveRaftVoterResponse]: ...
    def fetch(self, ctx: Context, request: FetchRequest) -> FetchResponse | Awaitable[FetchResponse]:
        """Serves followers and observers of the metadata log."""

    def fetch_snapshot(self, ctx: Context, request: FetchSnapshotRequest) -> Awaitable[FetchSnapshotResponse]: ...
    def vote(self, request: VoteRequest) -> Awaitable[VoteResponse]: ...
    def begin_epoch(self, request: BeginQuorumEpochRequest) -> Awaitable[BeginQuorumEpochResponse]: ...
    def end_epoch(self, request: EndQuorumEpochRequest) -> Awaitable[EndQuorumEpochResponse]: ...
    def update_voter(self, request: UpdateRaftVoterRequest) -> Awaitable[UpdateRaftVoterResponse]: ...


class RouteDoor(Protocol):
    """How one version of an API is served."""

    @property
    def api(self) -> Api: ...
    @property
    def version(self) -> int: ...
    @property
    def handle(self) -> Handler: ...
    @property
    def request_class(self) -> type[Message]: ...
    @property
    def response_class(self) -> type[Message]: ...
    def encode(self, correlation_id: int, message: object) -> list[Records]:
        """A whole reply frame as parts, the first of which begins with the size."""


class ApisDoor(Protocol):
    """Which APIs are answered on a kind of listener."""

    def route(self, key: int, version: int) -> RouteDoor | None:
        """How a version of an API is served; None when it is not."""

    def advertised(self) -> Sequence[tuple[int, int, int]]:
        """(key, lowest version, highest version) as ApiVersions tells it, ordered by key."""


class FeaturesDoor(Protocol):
    """Feature levels: what this software can do, and what the cluster has agreed on."""

    def supported(self) -> dict[str, tuple[int, int]]: ...
    def finalized(self) -> tuple[int, dict[str, int]]:
        """(epoch, name → level)."""


@dataclass(slots=True)
class Services:
    """The doors of one node. Built once, by the composition root; handlers reach it as `ctx.node`."""

    settings: BrokerSettings
    clock: Clock
    authorizer: Authorizer
    metadata: MetadataDoor
    controller: ControllerDoor
    partitions: PartitionsDoor
    produces: ProducesDoor
    fetches: FetchesDoor
    logs: LogsDoor
    producer_ids: ProducerIdsDoor
    quorum: QuorumDoor
    features: FeaturesDoor
    apis: ApisDoor
    groups: GroupsDoor
    transactions: TransactionsDoor
    relocations: RelocationsDoor
    audit: AuditDoor | None = None
    stores: StoresDoor | None = None
    """None where no client's change of them comes in first: at controllers."""


class Context:
    """One request's surroundings. Lives as long as the request; never shared between two."""

    __slots__ = (
        "api_key",
        "api_version",
        "client_host",
        "client_id",
        "connection",
        "deadline",
        "dialled",
        "listener",
        "node",
        "principal",
        "received_ms",
    )

    def __init__(
        self,
        node: Services,
        api_key: int,
        api_version: int,
        client_id: str | None = None,
        received_ms: float = 0.0,
        deadline: float = float("inf"),
        principal: Principal = ANONYMOUS,
        listener: ListenerInfo = LOOPBACK,
        client_host: str = "127.0.0.1",
        dialled: tuple[str, int] = ("127.0.0.1", 9092),
        connection: ConnectionDoor | None = None,
    ) -> None:
        """`received_ms` and `deadline` are monotonic milliseconds of the node's clock."""
        self.node = node
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.received_ms = received_ms
        self.deadline = deadline
        self.principal = principal
        self.listener = listener
        self.client_host = client_host
        self.dialled = dialled
        self.connection = connection

    @property
    def by_token(self) -> bool:
        """Whether the client logged in by a delegation token."""
        return False

    def asking(self, api_key: int, api_version: int) -> Context:
        """The same surroundings for another request, made on behalf of the same client."""
        return (ByToken if self.by_token else Context)(
            self.node,
            api_key,
            api_version,
            self.client_id,
            self.received_ms,
            self.deadline,
            self.principal,
            self.listener,
            self.client_host,
            self.dialled,
            self.connection,
        )

    def toll_due(self) -> Toll | None:
        """What a client's fetch has to pay; None where nobody has a quota."""
        return None

    def allow(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether the client may do `operation` to the named resource. Every handler asks before it acts."""
        authorizer = self.node.authorizer
        if authorizer.allows(self.principal, self.client_host, operation, resource_type, name):
            return True
        authorizer.denied(self.principal, self.client_host, operation, resource_type, name)
        if self.node.audit is not None:
            self.node.audit.denied(self, operation, resource_type, name)
        return False

    def may(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """As `allow` where a no is no offence: the first of two ways, what is left out of a list, bits of a reply."""
        return self.node.authorizer.allows(self.principal, self.client_host, operation, resource_type, name)

    def rights(self) -> Hashable:
        """Equal to what it was as long as the client is the same and may do the same."""
        return self.principal, self.client_host, self.node.authorizer.version

    def may_describe(self, topic: str) -> bool:
        """Whether the client may know of a topic; coordinators ask when a pattern matches it."""
        return self.may(Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def may_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the client may do `operation` to some resource of the type, whatever its name."""
        return self.node.authorizer.allows_any(self.principal, self.client_host, operation, resource_type)

    def authorized_operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """The bit field of `*_authorized_operations`: bit n is set when operation n is allowed."""
        bits = 0
        for operation in _OPERATIONS_OF.get(resource_type, ()):
            if self.may(operation, resource_type, name):
                bits |= 1 << operation
        return bits


class ByToken(Context):
    """The surroundings of a request whose client logged in by a delegation token."""

    __slots__ = ()

    @property
    def by_token(self) -> bool:
        return True
