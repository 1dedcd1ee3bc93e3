"""What a handler is given and what it may give back. Drivers stand behind narrow doors; handlers never see one.

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

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings
    from penstock.model.ids import NodeId
    from penstock.model.ports import Clock
    from penstock.storage.store import LogStore


class Operation(IntEnum):
    """What somebody wants to do; the numbers are those of ACLs on the wire."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """What it would be done to; the numbers are those of ACLs on the wire."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME: Final = "kafka-cluster"
"""The only name a CLUSTER resource has."""

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


class Principal(NamedTuple):
    """Who is asking."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")


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
    what a handler may return.
    """

    __slots__ = ("when_ready",)

    when_ready: Callable[[], None]

    def outcome(self) -> Outcome:
        raise AssertionError("a reply without a maker")


class Encoded:
    """A response body that is encoded already: bytes and file spans, without the response header."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts


class NoReply(Enum):
    """The type of `NO_REPLY`."""

    NO_REPLY = "no reply"


NO_REPLY: Final = NoReply.NO_REPLY

Outcome: TypeAlias = Any
"""What `handle` returns: message | Awaitable[message] | Later | Encoded | NO_REPLY."""

Handler: TypeAlias = Callable[["Context", Any], Outcome]

PlainHandler: TypeAlias = Callable[["Context", bytearray, int, int], Outcome]
"""Takes the context, the frame, where the body begins in it, and the correlation id."""


class Disconnect(PenstockError):
    """The only fitting answer is to hang up; `why` goes to the log."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Authorizer(Protocol):
    """Decides who may do what."""

    def allows(
        self, principal: Principal, client_host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool: ...


class ConnectionDoor(Protocol):
    """What handlers and drivers may know of, and do to, the connection behind a request."""

    number: int
    """Unique in the life of the node; for logs and for keys of per-connection state."""
    software: tuple[str, str]
    """Name and version of the client library, as told by ApiVersions v3."""
    fetch_session: Any
    """The implicit session of a connection that fetches without one; belongs to the fetch driver."""

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Calls back once, when the connection is gone; at once when it is gone already."""

    def mute(self, duration_ms: float) -> None:
        """Starts no further request of this connection for that long. Replies still leave."""

    def close(self) -> None: ...


class MetadataDoor(Protocol):
    """The cluster as this node has published it."""

    node_id: NodeId
    cluster_id: str
    fragments: dict[Any, Any]
    """Encoded pieces of replies by (topic id, …), forgotten when the topic or a broker changes."""

    @property
    def image(self) -> ClusterImage: ...


class ControllerDoor(Protocol):
    """Where changes to metadata are decided."""

    def submit(self, request: Any, ctx: Context) -> Awaitable[Any]:
        """Runs the decision that matches the request's class; done when it is committed and published here."""

    def forward(self, request: Any, ctx: Context) -> Awaitable[Any]:
        """The active controller's reply to a request that only it can answer, wherever it is."""


class ProducerIdsDoor(Protocol):
    """Blocks of producer ids, allotted by the controller."""

    def take(self) -> int | Awaitable[int]:
        """An id that nobody had before; an awaitable when the next block has to be fetched first."""


class QuorumDoor(Protocol):
    """The metadata quorum, for those who describe it and for those who take part in it."""

    @property
    def leading(self) -> bool:
        """Whether this node is the active controller."""

    @property
    def leader(self) -> NodeId:
        """Who is, as far as this node knows; -1 for nobody."""

    def describe(self) -> Any: ...
    def fetch(self, ctx: Context, request: Any) -> Any:
        """Serves followers and observers of the metadata log."""

    def fetch_snapshot(self, ctx: Context, request: Any) -> Any: ...
    def vote(self, request: Any) -> Any: ...
    def begin_epoch(self, request: Any) -> Any: ...
    def end_epoch(self, request: Any) -> Any: ...
    def add_voter(self, request: Any) -> Any: ...
    def remove_voter(self, request: Any) -> Any: ...
    def update_voter(self, request: Any) -> Any: ...


class ApisDoor(Protocol):
    """Which APIs are answered on a kind of listener."""

    def route(self, key: int, version: int) -> Any:
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
    partitions: Any
    """The partition driver: writes, ends, waits for commits."""
    produces: Any
    """The produce driver: admits, writes, waits for what acks promises."""
    fetches: Any
    """The fetch driver: sessions and waiting fetches."""
    logs: LogStore
    producer_ids: ProducerIdsDoor
    quorum: QuorumDoor
    features: FeaturesDoor
    apis: ApisDoor
    groups: Any = None
    """The coordinator driver: groups whose shards live here."""
    relocations: Any = None
    """The relocation driver: moves replicas between log directories."""


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

    def asking(self, api_key: int, api_version: int) -> Context:
        """The same surroundings for another request, made on behalf of the same client."""
        return Context(
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

    def allow(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether the client may do `operation` to the named resource. Every handler asks before it acts."""
        return self.node.authorizer.allows(self.principal, self.client_host, operation, resource_type, name)

    def authorized_operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """The bit field of `*_authorized_operations`: bit n is set when operation n is allowed."""
        bits = 0
        for operation in _OPERATIONS_OF.get(resource_type, ()):
            if self.allow(operation, resource_type, name):
                bits |= 1 << operation
        return bits
